// The attention of the sentence that the address names, asked of the server that gave this page.

import { showAttention } from "./attention.js";
import { headNumbersFrom } from "./numbers.js";
import { made } from "./paint.js";
import { sentenceFrom } from "./state.js";

const KEY = "transduce-key"; // under which the page that translates leaves the user's key for this tab

export async function begin() {
  const asked = sentenceFrom(location.hash);
  addEventListener("hashchange", () => {
    if (JSON.stringify(sentenceFrom(location.hash)) !== JSON.stringify(asked)) location.reload();
  });
  const status = made("p", { role: "status", text: "Asking the server …" });
  const shown = [...document.querySelectorAll("dl.pair, main > *, footer")];
  shown.forEach((part) => (part.hidden = true));
  const main = document.querySelector("main");
  main.prepend(status);
  document.querySelector("header").append(made("nav", {}, made("a", { href: "./", text: "Translate" })));
  if (!asked.text) {
    status.textContent = "There is no sentence to look into: translate one first.";
    return;
  }
  try {
    const report = await ask("v1/attention", asked);
    status.remove();
    shown.forEach((part) => (part.hidden = false));
    showAttention(report, { numbers: numbersOf(report, asked.model) });
  } catch (fault) {
    status.textContent = fault.message;
    if (fault.needsKey) main.prepend(status, keyForm());
  }
}

// Returns q, k and v of one head on demand. Ids, not texts: what search found need not be how the text would be cut.
function numbersOf(report, model) {
  const [source, target] = [report.source, report.target].map((side) => side.tokens.map((token) => token.id));
  const known = new Map();
  return (stack, layer, head) => {
    const name = `${stack} ${layer} ${head}`;
    if (!known.has(name)) {
      const answer = ask("v1/attention/numbers", { source, target, stack, layer, head, model }).then(headNumbersFrom);
      known.set(name, answer);
      answer.catch(() => known.delete(name)); // the next look asks again
    }
    return known.get(name);
  };
}

async function ask(path, body) {
  const key = sessionStorage.getItem(KEY);
  const headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  let response;
  try {
    response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  } catch {
    throw new Error("The server does not answer.");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const fault = new Error(answer.error ?? `The server answered ${response.status}.`);
  fault.needsKey = [401, 403].includes(response.status);
  throw fault;
}

function keyForm() {
  const input = made("input", { type: "password", autocomplete: "off", spellcheck: "false" });
  const form = made("form", {}, made("label", {}, "key ", input), " ", made("button", { text: "Show" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, input.value.trim());
    location.reload();
  });
  return form;
}
