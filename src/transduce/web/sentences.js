// Shows one sentence of a text, and lets the user choose another.

import { showAttention } from "./attention.js";
import { made } from "./paint.js";
import { addressOfSentence, sentenceNumber } from "./state.js";

const LONGEST_OPTION = 60; // characters

// `texts` are the sentences; `load(index)` gives { json, numbers } of one, as `showAttention` takes them. Each report
// fills its own copy of `unused`, the page's <main> as the file has it.
export async function showSentences(texts, load, unused = unusedMain()) {
  const select = made("select", { id: "sentence" }, ...texts.map(sentenceOption));
  const loading = made("span", { role: "status", className: "loading" });
  if (texts.length > 1)
    document.querySelector(".pair").before(made("p", {}, made("label", { className: "choice" }, "sentence ", select), loading));
  let [shown, listening] = [-1, new AbortController()];

  async function show() {
    const wanted = Math.min(sentenceNumber(location.hash), texts.length) - 1;
    select.value = String(wanted);
    if (wanted === shown) return;
    shown = wanted;
    listening.abort();
    listening = new AbortController();
    const { signal } = listening;
    showLoading(loading, true);
    try {
      const { json, numbers } = await load(wanted);
      if (signal.aborted) return; // the user has chosen another sentence meanwhile
      document.querySelector("main").replaceWith(unused.cloneNode(true));
      showReport(true);
      showAttention(json, { numbers, signal });
      showLoading(loading, false);
    } catch (fault) {
      if (signal.aborted) return;
      showLoading(loading, false);
      shown = -1; // choosing the sentence again tries again
      throw fault;
    }
  }

  select.addEventListener("change", () => {
    location.hash = addressOfSentence(location.hash, Number(select.value) + 1);
  });
  addEventListener("hashchange", () => show().catch(showFault));
  await show().catch(showFault);
}

// The sentence before stays in sight, but pale, until the one that was chosen has come.
function showLoading(status, isLoading) {
  status.textContent = isLoading ? "Loading …" : "";
  document.querySelector("main").ariaBusy = String(isLoading);
}

export function unusedMain() {
  return document.querySelector("main").cloneNode(true);
}

// Shows a message in place of the report. `fault.form` is a form with which the user can mend it.
export function showFault(fault) {
  showReport(false);
  const status = made("p", { role: "status", text: fault.message });
  document.querySelector("main").replaceChildren(status, ...(fault.form ? [fault.form] : []));
}

function showReport(isShown) {
  document.querySelectorAll(".pair, footer").forEach((part) => {
    part.hidden = !isShown;
  });
}

function sentenceOption(text, index) {
  const characters = [...text.trim()];
  const short = characters.length > LONGEST_OPTION ? `${characters.slice(0, LONGEST_OPTION).join("")}…` : text;
  return made("option", { value: index, text: `${index + 1}. ${short}` });
}
