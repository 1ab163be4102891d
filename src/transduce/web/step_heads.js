// Step 4: heads side by side, and what the model would predict without one of them.

import { shownNumber } from "./algebra.js";
import { choiceExercise, numberExercise } from "./exercises.js";
import { bar, equationOf, paragraph, stepElement, strong, weightGrid } from "./learn_parts.js";
import { made, thumbnail } from "./paint.js";
import { groupsOf } from "./picture.js";
import { candidateText } from "./report.js";
import { range } from "./state.js";

const KINDS = ["encoder", "decoder", "cross"];
const totalOf = (values) => values.reduce((sum, value) => sum + value, 0);

// Every head that can be removed, with how much less probable the whole translation is without it.
export function effectsOf(report) {
  const whole = totalOf(report.json.target.tokens.map((token) => token.log_probability));
  return KINDS.flatMap((kind) =>
    (report.json.without?.[kind] ?? []).flatMap((heads, layer) =>
      heads.map((own, head) => ({ kind, layer, head, own, change: totalOf(own.log_probabilities) - whole })),
    ),
  );
}

export function createHeadsStep(app) {
  const equation = equationOf("MultiHead is the concatenation of head 1 to head h, times W O", [
    "MultiHead(Q, K, V) = Concat( ",
    ["head₁", "head", "headᵢ = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V): each head has projections of its own."],
    ", …, ",
    ["headₕ", "head", "headᵢ = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V): each head has projections of its own."],
    " ) ",
    ["W^O", "output", "W^O: mixes the outputs of all heads. To remove a head, put zeros in its place before W^O."],
  ]);
  const grid = made("div", { className: "head-board" });
  const detail = made("div");
  let chosen = null;
  let token = 0;

  function render() {
    const lesson = app.lesson();
    if (!lesson) return;
    const effects = effectsOf(lesson.report);
    if (lesson !== chosen?.lesson) {
      const strongest = effects.reduce((worst, one) => (one.change < worst.change ? one : worst), effects[0]);
      chosen = { ...strongest, lesson };
      token = drops(lesson.report, chosen).reduce((worst, drop, index, all) => (drop < all[worst] ? index : worst), 0);
    }
    const focused = grid.contains(document.activeElement) ? document.activeElement.dataset.head : null;
    grid.replaceChildren(...KINDS.map((kind) => kindGrid(lesson.report, kind, effects)));
    if (focused) grid.querySelector(`[data-head="${focused}"]`)?.focus();
    renderDetail(lesson, effects);
  }

  const drops = (report, { own }) => own.log_probabilities.map((value, index) => value - report.json.target.tokens[index].log_probability);

  function kindGrid(report, kind, effects) {
    const stack = report.stacks[kind];
    const box = made("div", { className: "head-grid", role: "group", "aria-label": `Heads of ${kind}` });
    box.style.setProperty("--heads", String(stack.heads));
    for (const effect of effects.filter((one) => one.kind === kind)) {
      const { layer, head, change } = effect;
      const isChosen = chosen.kind === kind && chosen.layer === layer && chosen.head === head;
      const canvas = made("canvas", { "aria-hidden": "true" });
      const [rows, columns] = [stack.queries.length, stack.keys.length];
      const weights = Float32Array.from({ length: rows * columns }, (_, index) => stack.weight(layer, head, Math.floor(index / columns), index % columns));
      thumbnail(canvas, weights, rows, columns, app.colors());
      const button = made("button", { type: "button", "aria-pressed": String(isChosen), "data-head": `${kind} ${layer} ${head}`, "aria-label": `${kind}, layer ${layer + 1}, head ${head + 1}: without it the log-probability of the translation changes by ${change.toFixed(2)}` }, canvas, made("span", { text: changeText(change), "aria-hidden": "true" }));
      button.addEventListener("click", () => {
        chosen = { ...effect, lesson: app.lesson() };
        render();
      });
      box.append(button);
    }
    return made("section", { className: "head-kind" }, made("h3", { text: `${kind}: ${stack.title}` }), made("p", { className: "quiet", text: `rows: layer 1 to ${stack.layers}; columns: head 1 to ${stack.heads}` }), box);
  }

  function renderDetail(lesson, effects) {
    const { report } = lesson;
    const { kind, layer, head, own, change } = chosen;
    const stack = report.stacks[kind];
    token = Math.min(token, report.target.length - 1);
    const small = effects.filter((one) => Math.abs(one.change) < 0.1).length;
    const [rows, columns] = [stack.queries, stack.keys].map((tokens) => groupsOf(tokens, {}, Infinity).map(({ text }) => text));
    const names = groupsOf(report.target, {}, Infinity).map(({ text }) => text);
    detail.replaceChildren(
      made("h3", { text: `Without ${kind}, layer ${layer + 1}, head ${head + 1}` }),
      made("p", { className: "how", role: "status", text: `The log-probability of the whole translation changes by ${changeText(change)}${timesText(change)}. Of all ${effects.length} heads, ${small} change it by less than 0.1.` }),
      made(
        "div",
        { className: "two" },
        made("section", {}, made("h4", { text: "What this head looks at" }), weightGrid({ label: "rows look, columns are looked at", rows, columns, weight: (q, k) => stack.weight(layer, head, q, k), isVisible: stack.isVisible })),
        made("section", {}, made("h4", { text: "Probability of each word of the translation" }), wordTable(report, own, names)),
      ),
      candidates(report, own, names),
    );
    equation.light(["head"]);
  }

  function wordTable(report, own, names) {
    const table = made("table", { className: "probabilities" }, made("tr", {}, ...["word", "all heads", "without"].map((text) => made("th", { scope: "col", text }))));
    names.forEach((name, index) => {
      const button = made("button", { type: "button", text: name, dir: "auto", "aria-pressed": String(index === token) });
      button.addEventListener("click", () => {
        token = index;
        renderDetail(app.lesson(), effectsOf(report));
        detail.querySelectorAll(".probabilities button")[index].focus();
      });
      const [whole, without] = [report.json.target.tokens[index].log_probability, own.log_probabilities[index]].map(Math.exp);
      table.append(made("tr", { className: index === token ? "on" : "" }, made("th", { scope: "row" }, button), made("td", {}, bar(whole, whole.toFixed(2))), made("td", {}, bar(without, without.toFixed(2), whole - without > 0.05 ? "less" : ""))));
    });
    return made("div", { className: "scroll wide", tabindex: "0", role: "group", "aria-label": "Probability of each word" }, table);
  }

  function candidates(report, own, names) {
    const list = (title, entries) =>
      made("section", {}, made("h4", { text: title }), made("ol", { className: "bars" }, ...entries.map(({ text, probability }) => made("li", {}, made("span", { className: "bar-name", dir: "auto", text: candidateText({ text }, report.json.target.tokens[token - 1]) }), bar(probability, probability.toFixed(2))))));
    const before = names.slice(0, token).join(" ");
    const isChanged = own.candidates[token][0].id !== report.json.candidates[token][0].id;
    return made(
      "section",
      {},
      made("h3", { text: `In place of “${names[token]}”` }),
      made("p", {}, token ? `What comes after “${before} …”? ` : "What comes first? ", isChanged ? strong("Without this head another word is the most probable.") : "The most probable word stays the same, with and without this head."),
      made("div", { className: "two" }, list("all heads", report.json.candidates[token].slice(0, 5)), list("without this head", own.candidates[token])),
    );
  }

  const counting = numberExercise({
    ask: "The base model of the paper has 6 encoder layers with one attention sub-layer each, and 6 decoder layers with two each. Every sub-layer has 8 heads. How many heads are there in all?",
    label: "heads: ",
    answer: () => 144,
    within: 0.1,
    near: [
      [() => 8, "8 is the number in one sub-layer. Each sub-layer has 8 of its own."],
      [() => 16, "Not 8 in the encoder and 8 in the decoder: 8 in each sub-layer of each layer."],
      [() => 18, "That is the number of sub-layers. Each has 8 heads."],
      [() => 96, "A decoder layer has two attention sub-layers: one over itself and one over the source."],
    ],
    explain: () => "6 + 2 × 6 = 18 sub-layers, times 8 heads = 144.",
  });
  const meaning = choiceExercise({
    ask: "You remove a head and the translation stays as probable as before. What follows?",
    options: [
      { text: "The head learned nothing.", why: "It may matter for other sentences. Choose another sentence and compare the same head." },
      { text: "For this sentence, the model does without this head.", isRight: true, why: "Other heads may do the same work, or nothing here needed it." },
      { text: "Its attention weights are all zero.", why: "The weights of a row always add up to 1. Look at its picture." },
    ],
  });
  const element = stepElement(app, {
    number: 4,
    question: "Why several heads?",
    say: ["One head gives one set of weights, an average over what it looks at. Several heads look at different things at once. Here are all heads of this model on your sentence. In each picture a row is a word that looks, a column a word looked at. The number below says how the log-probability of the translation changes without the head. Press one to take it out."],
    equation,
    picture: [grid, detail],
    code: [
      ["heads", "All heads side by side, mixed by W^O:"],
      ["ablation", "How this page takes a head out:"],
    ],
    wrong: [
      {
        claim: "There are 8 sets of queries, keys and values per encoder and per decoder.",
        truth: paragraph("There are 8 heads in every attention sub-layer of every layer. The model above has as many sub-layers as it has rows of pictures. The base model has 18, so 144 heads."),
      },
      {
        claim: "More heads mean more computation.",
        truth: paragraph("A head is narrow: dₖ = d_model / h. Eight heads of 64 numbers cost about as much as one of 512. In the paper's Table 3, 16 heads are as good as 8, and one head or 32 are worse."),
      },
      {
        claim: "Every head has a clear job.",
        truth: paragraph("Look at the numbers under the pictures: for one sentence many heads can go and little changes, and a few matter much. Some patterns are easy to name, many are not."),
      },
    ],
    exercise: { element: made("div", {}, counting.element, meaning.element) },
  });
  return { element, render };
}

// e^−3.2 is 1/25, so the log-probability less 3.2 is 25 times less probable.
function timesText(change) {
  if (Math.abs(change) < 0.05) return ": it stays about as probable as before";
  return `: it is ${shownNumber(Math.exp(Math.abs(change)), 1)} times ${change < 0 ? "less" : "more"} probable`;
}

function changeText(change) {
  const digits = Math.abs(change).toFixed(2);
  return digits === "0.00" ? digits : `${change < 0 ? "−" : "+"}${digits}`;
}
