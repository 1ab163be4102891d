// Shows the reports that the page carries; a page without any asks its server.

import { made } from "./paint.js";
import { showSentences } from "./sentences.js";

// A notebook's frame gets the height of the page, so that it needs no second scroll bar.
if (parent !== window) {
  const tellHeight = () => parent.postMessage({ attentionHeight: document.documentElement.offsetHeight }, "*");
  new ResizeObserver(tellHeight).observe(document.body);
}

// A corpus ranks heads by role: each role is a link to the state that shows its example.
const roles = document.getElementById("roles").textContent;
if (roles) {
  const list = document.getElementById("role-list");
  list.hidden = false;
  for (const { text, weight, even, address } of JSON.parse(roles)) {
    const figures = ` weight ${weight.toFixed(2)}, even share ${even.toFixed(2)}`;
    list.querySelector("ul").append(made("li", {}, made("a", { href: address, text }), figures));
  }
}

const carried = document.getElementById("report").textContent;
if (carried) {
  const reports = [JSON.parse(carried)].flat(); // one report, or one for each sentence
  const texts = reports.map(({ source, target }) => source.text || target.text);
  showSentences(texts, async (index) => ({ json: reports[index] }));
} else import("./served.js").then(({ begin }) => begin()); // loaded by name, so that a page on disk does not contain it
