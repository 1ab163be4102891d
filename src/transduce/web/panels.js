// The panels beside the views: the read-out of a token's weights, decoding step by step, and the word alignment.

import { combinedWeights, focusOf, headsText, pictureOf, summedFocus } from "./picture.js";
import { made, percent } from "./paint.js";
import { candidateText, weightText, wordsOf } from "./report.js";
import { gaugeCell, numberCell, scrolling } from "./neuron_view.js";

export function createReadout(app, box) {
  const choice = made("select", { id: "read" });
  const label = made("label", { className: "quiet" }, "weights of ", choice);
  const content = made("div");
  choice.addEventListener("change", () => app.store.set({ read: Number(choice.value) }));
  function offerHeads(state) {
    label.hidden = state.heads.length < 2;
    const options = [[-1, headsText(state)], ...state.heads.map((head) => [head, `head ${head + 1}`])];
    const key = options.join();
    if (choice.dataset.key !== key)
      choice.replaceChildren(...options.map(([value, text]) => made("option", { value, text })));
    choice.dataset.key = key;
    choice.value = String(state.read);
  }
  return function render(state) {
    offerHeads(state);
    if (content.parentElement !== box) box.replaceChildren(label, content);
    const picture = pictureOf(app.report, state);
    const hover = app.hover();
    const focus =
      focusOf(picture, state, hover) ??
      (state.view === "matrix" ? focusOf(picture, state, { side: "query", tokens: [state.at[0]] }) : null);
    if (!focus || !state.heads.length) {
      const text = state.heads.length
        ? "Point at a token, or pin some, to read their weights."
        : "No head is switched on.";
      content.replaceChildren(made("p", { className: "quiet", text }));
      return;
    }
    const heads = state.read < 0 ? state.heads : [state.read];
    const weights = summedFocus(picture, combinedWeights(picture, heads, state.combine), focus);
    const [own, other] = focus.side === "query" ? [picture.queries, picture.keys] : [picture.keys, picture.queries];
    const marked = hover?.other ?? (state.view === "matrix" ? [state.at[1]] : []);
    const names = focus.members.map((index) => own[index].text).join(" + ");
    const of = headsText({ ...state, heads });
    const caption = focus.side === "query" ? `attends to (${of})` : `gets from (${of})`;
    content.replaceChildren(
      weightTable(made("caption", {}, made("bdi", { text: names }), ` ${caption}`), other, weights, {
        state,
        marked,
        digits: picture.stack.digits,
      }),
    );
  };
}

function weightTable(caption, groups, weights, { state, marked, digits }) {
  const order = weights
    .map((weight, index) => ({ weight, index }))
    .filter(({ weight }) => weight >= state.threshold / 100);
  order.sort((a, b) => b.weight - a.weight || a.index - b.index);
  const largest = Math.max(1, ...weights);
  const rows = order.map(({ weight, index }) => {
    const isOn = groups[index].members.some((token) => marked.includes(token));
    return made(
      "tr",
      { className: isOn ? "on" : "" },
      made("th", { scope: "row", text: groups[index].text, dir: "auto" }),
      numberCell(weightText(weight, digits)),
      gaugeCell(weight / largest),
    );
  });
  if (!rows.length) rows.push(made("tr", {}, made("td", { text: "nothing reaches the threshold" })));
  const header = made(
    "tr",
    {},
    made("th", { scope: "col", text: "token" }),
    made("th", { scope: "col", className: "number", text: "weight" }),
    made("td"),
  );
  return scrolling(
    made("table", {}, caption, made("thead", {}, header), made("tbody", {}, ...rows)),
    "Weights of the tokens in focus",
  );
}

export function createDecoding(app, box) {
  const { report, store } = app;
  if (!report.steps || !report.json.candidates.length) return absent(box);
  const slider = made("input", { type: "range", id: "step", min: 1, max: report.steps, step: 1 });
  const value = made("output", { for: "step" });
  const written = made("p", { dir: "auto" });
  const table = made("div");
  box.append(made("label", { className: "quiet" }, "token ", slider, " ", value), written, table);
  slider.addEventListener("input", () => store.set({ step: Number(slider.value) }));
  let drawn = 0;
  return function render(state) {
    slider.value = String(state.step);
    if (drawn === state.step) return;
    drawn = state.step;
    const token = report.target[state.step - 1];
    value.textContent = `${state.step} of ${report.steps}`;
    slider.setAttribute("aria-valuetext", `token ${state.step} of ${report.steps}: ${token.text}`);
    const before = report.json.target.tokens[state.step - 1].start;
    const text = lastOf([...report.json.target.text].slice(0, before));
    written.replaceChildren(
      made("span", { className: "quiet", text: text || "nothing is written yet" }),
      " ",
      made("strong", { text: token.text }),
    );
    table.replaceChildren(candidateTable(report, state.step - 1));
  };
}

// Hides the section of a panel that has nothing to show of this report.
function absent(box) {
  box.parentElement.hidden = true;
  return () => {};
}

function lastOf(characters) {
  return (characters.length > 70 ? "…" : "") + characters.slice(-70).join("");
}

function candidateTable({ json }, step, given = json.candidates[step], own = json.target.tokens[step].log_probability) {
  const { tokens } = json.target;
  const chosen = tokens[step];
  const candidates = [...given];
  if (!candidates.some((candidate) => candidate.id === chosen.id)) {
    candidates.push({ id: chosen.id, text: chosen.text, probability: Math.exp(own) });
  }
  const rows = candidates.map((candidate) =>
    made(
      "tr",
      { className: candidate.id === chosen.id ? "on" : "" },
      made("th", { scope: "row", text: candidateText(candidate, tokens[step - 1]), dir: "auto" }),
      numberCell(percent(candidate.probability)),
      gaugeCell(candidate.probability),
    ),
  );
  const header = made(
    "tr",
    {},
    made("th", { scope: "col", text: "candidate" }),
    made("th", { scope: "col", className: "number", text: "probability" }),
    made("td"),
  );
  return made(
    "table",
    {},
    made("caption", { text: "The most probable tokens here; bold is the one that was chosen" }),
    made("thead", {}, header),
    made("tbody", {}, ...rows),
  );
}

// What the network would predict at the step that is shown without the chosen head, in a report that carries it.
export function createAblation({ report, store }, box) {
  const { without } = report.json;
  box.parentElement.hidden = !without;
  if (!without) return () => {};
  const select = made("select", { id: "removed" });
  const said = made("p", { role: "status" });
  const table = made("div");
  box.append(made("label", { className: "quiet" }, "head ", select), said, table);
  select.addEventListener("change", () => store.set({ head: Number(select.value), heads: [Number(select.value)] }));
  return function render(state) {
    const heads = without[state.stack]?.[state.layer];
    select.parentElement.hidden = !heads;
    table.replaceChildren();
    if (!heads) return void (said.textContent = "Choose one kind of attention to take a head out.");
    if (select.length !== heads.length)
      select.replaceChildren(...heads.map((_, head) => made("option", { value: head, text: head + 1 })));
    select.value = String(state.head);
    const own = heads[state.head];
    const place = state.step - 1;
    const before = report.json.target.tokens.map((token) => token.log_probability);
    const change = own.log_probabilities.reduce((sum, value, index) => sum + value - before[index], 0);
    const isOther = own.candidates[place][0].id !== report.json.candidates[place][0].id;
    said.textContent =
      `Without layer ${state.layer + 1}, head ${state.head + 1} of ${state.stack}, the log-probability of the whole ` +
      `${report.names.target} changes by ${change.toFixed(2)}. ` +
      (isOther ? "Another token would be the most probable here:" : "The most probable token here stays the same:");
    table.replaceChildren(candidateTable(report, place, own.candidates[place], own.log_probabilities[place]));
  };
}

export function createAlignment(app, box) {
  const { alignment, source, target } = app.report.json;
  if (!alignment) return absent(box);
  const [from, to] = [wordsOf(target), wordsOf(source)];
  const rows = from.map((word, index) => {
    const other = alignment.hard[index];
    const cells =
      other === null
        ? [made("td", { text: "–" }), numberCell("")]
        : [made("td", { text: to[other], dir: "auto" }), numberCell(alignment.soft[index][other].toFixed(2))];
    return made("tr", {}, made("th", { scope: "row", text: word, dir: "auto" }), ...cells);
  });
  const header = made(
    "tr",
    {},
    ...["translation", "source", "weight"].map((text) =>
      made("th", { scope: "col", text, className: text === "weight" ? "number" : "" }),
    ),
  );
  const { name, layers, heads } = app.report.stacks[alignment.block];
  const where = [name, layers > 1 && `layer ${alignment.layer + 1}`, heads > 1 && "mean of the heads"].filter(Boolean);
  const caption = `Read off ${where.join(", ")}: for each word, the source word with the most weight`;
  box.append(
    scrolling(
      made("table", {}, made("caption", { text: caption }), made("thead", {}, header), made("tbody", {}, ...rows)),
      "Word alignment",
    ),
  );
  return function render(state) {
    const word = target.tokens[state.step - 1].word;
    rows.forEach((row, index) => row.classList.toggle("on", index === word && state.step < app.report.steps));
  };
}
