// Asks the server that gave this page for the attention of the text that the address names.

import { headNumbersFrom } from "./numbers.js";
import { made } from "./paint.js";
import { showFault, showSentences, unusedMain } from "./sentences.js";
import { requestFrom } from "./state.js";

const KEY = "transduce-key"; // the name in session storage under which the translation page keeps the user's key

export async function begin() {
  const asked = requestFrom(location.hash);
  addEventListener("hashchange", () => {
    if (JSON.stringify(requestFrom(location.hash)) !== JSON.stringify(asked)) location.reload();
  });
  document.querySelector("header").append(made("nav", {}, made("a", { href: "./", text: "Translate" })));
  if (!asked.text?.trim()) return showFault(new Error("There is no text to show: translate one first."));
  const unused = unusedMain();
  showFault(new Error("Asking the server …"));
  try {
    const sentences = await sentencesOf(asked);
    const load = async (index) => {
      const json = await ask("v1/attention", { model: asked.model, ...sentences[index] });
      return { json, numbers: numbersOf(json, asked.model) };
    };
    const texts = sentences.map(({ text }) => text);
    await showSentences(texts, load, unused);
  } catch (fault) {
    showFault(fault);
  }
}

// Returns a request for each sentence: with the token ids that the address carries, or those of a new translation.
async function sentencesOf({ text, target, model, sentences }) {
  const models = await ask("v1/models");
  const kind = (models.find(({ name }) => name === model) ?? models[0]).kind;
  if (kind === "language-model") return [{ text }];
  if (target || kind !== "translation") return [{ text, target }];
  const characters = [...text]; // spans count code points
  const outputs = sentences ?? (await ask("v1/translate", { text, model })).translations[0].alternatives[0].sentences;
  if (!outputs.length) throw new Error("There is no attention to show: nothing of the text was translated.");
  return outputs.map(({ start, end, tokens }) => ({
    text: characters.slice(start, end).join(""),
    target_ids: tokens,
  }));
}

// Returns a function that asks for q, k and v of one head. It sends ids, because the search may have cut the
// translation into other tokens than the tokenizer would.
function numbersOf(report, model) {
  const [source, target] = [report.source, report.target].map((side) => side.tokens.map((token) => token.id));
  const known = new Map();
  return (stack, layer, head) => {
    const name = `${stack} ${layer} ${head}`;
    if (!known.has(name)) {
      const answer = ask("v1/attention/numbers", { source, target, stack, layer, head, model }).then(headNumbersFrom);
      known.set(name, answer);
      answer.catch(() => known.delete(name)); // ask again the next time
    }
    return known.get(name);
  };
}

// Posts a body, or gets what a path names.
async function ask(path, body) {
  const key = sessionStorage.getItem(KEY);
  const headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  let response;
  try {
    const method = body ? "POST" : "GET";
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  } catch {
    throw new Error("The server does not answer.");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const fault = new Error(answer.error ?? `The server answered ${response.status}.`);
  if ([401, 403].includes(response.status)) fault.form = keyForm();
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
