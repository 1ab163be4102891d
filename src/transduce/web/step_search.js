// Step 5: beam search as a tree that grows, over the model's own probabilities.

import { shownNumber } from "./algebra.js";
import { beamSearch, lengthPenalty, textOf } from "./beam.js";
import { numberExercise } from "./exercises.js";
import { equationOf, paragraph, slider, stepElement, strong } from "./learn_parts.js";
import { made } from "./paint.js";

const SPACE = "http://www.w3.org/2000/svg";
const [COLUMN, ROW, LEFT, TOP] = [132, 34, 70, 30];
const PAUSE = 700; // milliseconds between two steps while the tree grows

export function createSearchStep(app) {
  const equation = equationOf("The score of Y is log P of Y given X, divided by the length penalty: 5 plus the length, over 6, to the power of alpha", [
    "score(Y) = ",
    ["log P(Y | X)", "logP", "log P(Y | X): the logarithms of the probabilities of all its words, added up. Each word makes it smaller, further below 0."],
    " / ( ( 5 + ",
    ["|Y|", "length", "|Y|: the number of tokens of the output (words and pieces of words), the end token included."],
    " ) / 6 ",
    [")^α", "alpha", "α: how much long outputs are made up to. With 0 only log P counts; the paper takes 0.6."],
  ]);
  const lesson = () => app.lesson()?.search;
  const beam = slider({ label: "beam width", min: 1, max: 5, value: 4, onInput: () => changed("logP") });
  const alpha = slider({ label: "length penalty α", min: 0, max: 2, step: 0.2, value: 0.6, shown: (value) => value.toFixed(1), onInput: () => changed("alpha") });
  const grown = slider({ label: "steps", min: 1, max: 1, value: 1, onInput: () => (stop(), draw()) });
  const play = made("button", { type: "button", text: "Let it grow" });
  let timer = 0;
  play.addEventListener("click", () => (timer ? stop() : start()));
  const tree = made("div", { className: "tree scroll", tabindex: "0", role: "group", "aria-label": "The tree of hypotheses, a column for each step" });
  const said = made("p", { className: "how", role: "status" });
  const table = made("div");
  const comparison = made("div");
  const surest = strong("");
  let found = null;

  function changed(term) {
    equation.light([term]);
    search();
  }

  function search() {
    if (!lesson()) return;
    surest.textContent = Math.exp(Math.max(...app.lesson().report.json.target.tokens.map((token) => token.log_probability))).toFixed(3);
    found = beamSearch(lesson(), { beam: beam.get(), alpha: Number(alpha.get().toFixed(1)) });
    grown.input.max = String(found.steps.length);
    grown.set(found.steps.length);
    draw();
    compare();
  }

  function start() {
    if (!found) return;
    play.textContent = "Stop";
    grown.set(1);
    draw();
    timer = setInterval(() => {
      if (grown.get() >= found.steps.length) return stop();
      grown.set(grown.get() + 1);
      draw();
    }, PAUSE);
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Let it grow";
  }

  function draw() {
    const count = grown.get();
    tree.replaceChildren(treeOf(lesson(), found, count));
    tree.scrollLeft = Math.max(0, LEFT + count * COLUMN - tree.clientWidth + 40);
    const step = found.steps[count - 1];
    const name = (one) => `${wordOf(lesson(), one.token)} (${one.logP.toFixed(2)})`.replace("-", "−");
    const of = (fate) => step.filter((one) => one.fate === fate).map(name).join(", ") || "none";
    said.textContent = `Step ${count} of ${found.steps.length}. Kept: ${of("alive")}. Dropped: ${of("dropped")}. Ended: ${of("finished")}.`;
    table.replaceChildren(finishedTable(lesson(), found, count, Number(alpha.get())));
  }

  // What each beam width finds, with the chosen α: the score of the best output.
  function compare() {
    const rows = Array.from({ length: lesson().widest }, (_, index) => beamSearch(lesson(), { beam: index + 1, alpha: Number(alpha.get().toFixed(1)) }));
    const extended = rows.map(({ steps }) => 1 + steps.slice(0, -1).reduce((sum, step) => sum + step.filter(({ fate }) => fate === "alive").length, 0));
    const body = rows.map(({ best }, index) =>
      made("tr", { className: index + 1 === beam.get() ? "on" : "" }, made("th", { scope: "row", text: String(index + 1) }), made("td", { text: textOf(lesson(), best.tokens), dir: "auto" }), made("td", { className: "number", text: shownNumber(best.score, 3) }), made("td", { className: "number", text: shownNumber(best.logP, 3) }), made("td", { className: "number", text: String(extended[index]) })),
    );
    comparison.replaceChildren(
      made("h3", { text: "What each width finds" }),
      made("p", { className: "quiet", text: new Set(rows.map(({ best }) => best.tokens.join())).size > 1 ? "The widths disagree on this sentence." : "All widths agree on this sentence. Try another one." }),
      made("div", { className: "scroll wide", tabindex: "0", role: "group", "aria-label": "Best output of each beam width" }, made("table", {}, made("tr", {}, ...headings("beam", "best output", "score", "log P", "beginnings extended")), ...body)),
    );
  }

  const exercise = numberExercise({
    ask: "An output of 10 tokens has log P = −6, another of 6 tokens has log P = −5.5. With α = 0.6, what is the score of the first? (The second has −5.5 / (11/6)^(0.6) = −3.82.)",
    label: "score = ",
    answer: () => -6 / lengthPenalty(10, 0.6),
    within: 0.006,
    near: [
      [() => -6 * lengthPenalty(10, 0.6), "Divide by the penalty, do not multiply."],
      [() => -6 / 10, "The penalty is not the length itself but ((5 + |Y|) / 6)^α."],
      [() => -6 / (10 / 6) ** 0.6, "Add 5 to the length first: (5 + 10) / 6."],
      [() => 6 / lengthPenalty(10, 0.6), "A log-probability is negative, and so is the score."],
    ],
    explain: () => "−6 / (15/6)^(0.6) = −3.46, which is above −3.82: the longer output wins, although it is less probable.",
  });
  const element = stepElement(app, {
    number: 5,
    question: "How is a translation chosen?",
    say: ["The model only gives probabilities of the next word. Beam search keeps a few beginnings, extends each by every word or piece of a word (␣ is a space), and keeps the best again. Drag the width of the beam and the length penalty, and let the tree grow. The number at a word is log P of the whole beginning up to it."],
    equation,
    picture: [made("div", { className: "sliders" }, beam.element, alpha.element, grown.element, play), tree, said, table, comparison],
    code: [
      ["penalty", "The length penalty:"],
      ["finished", "The score of a hypothesis that has ended:"],
    ],
    wrong: [
      {
        claim: "Beam search finds the most probable translation.",
        truth: paragraph("It finds the best of what it kept. With beam 1 it takes the best word each time and may miss a better whole. Compare the rows of “What each width finds” on several sentences. Sometimes a wider beam finds a better translation, and sometimes one that is more probable and worse."),
      },
      {
        claim: "The length penalty makes long outputs lose.",
        truth: paragraph("It is the other way round. Every word lowers log P, so short outputs win by themselves. The divisor grows with the length and brings long ones nearer to 0. Drag α to 2 and watch the scores of long outputs rise."),
      },
      {
        claim: "The ε_ls of label smoothing is the learned value of the label.",
        truth: paragraph("It is a fixed share, 0.1 in the paper: training takes it from the true word and spreads it over the whole vocabulary. A model trained so is never quite sure. In your translation its surest word has the probability ", surest, "."),
      },
      {
        claim: "All words are computed at once, since there is no recurrence.",
        truth: paragraph("In training yes: the words are known, and the mask of step “3 masks” hides what comes later. A translation is written word by word, as here."),
      },
    ],
    exercise,
  });
  return { element, render: search, leave: stop };
}

const wordOf = ({ names, end }, token) => (token === end ? "end" : names[token].replace(/^▁(?=.)/, "").replace("▁", "␣") || "␣");

function mark(name, attributes, ...children) {
  const shape = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, String(value));
  shape.append(...children);
  return shape;
}

// Draws the first `count` steps: a column for each, its candidates from the best down, and lines from what they extend.
function treeOf(search, { steps, best }, count) {
  const rows = Math.max(...steps.map((step) => step.length));
  const [width, height] = [LEFT + count * COLUMN + 60, TOP + rows * ROW + 10];
  const svg = mark("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const isOnBestPath = ({ tokens }) => tokens.every((token, index) => best.tokens[index] === token);
  const at = (step, row) => [LEFT + step * COLUMN, TOP + row * ROW + ROW / 2];
  svg.append(mark("text", { x: 8, y: TOP + ROW / 2 + 5, class: "word" }, "start"));
  steps.slice(0, count).forEach((step, number) => {
    svg.append(mark("text", { x: LEFT + number * COLUMN + 16, y: 18, class: "tick" }, `step ${number + 1}`));
    const before = number ? steps[number - 1].map((one, row) => ({ ...one, row })).filter(({ fate }) => fate === "alive") : [{ row: 0 }];
    step.forEach((one, row) => {
      const [x, y] = at(number, row);
      const [, from] = at(number - 1, before[one.from].row);
      const path = isOnBestPath(one) ? "best" : one.fate;
      const startX = number ? x - COLUMN + 112 : 48;
      svg.append(mark("path", { d: `M${startX} ${from} C${(startX + x) / 2} ${from} ${(startX + x) / 2} ${y} ${x} ${y}`, class: `edge ${path}` }));
      const word = wordOf(search, one.token);
      svg.append(
        mark("rect", { x, y: y - 13, width: 112, height: 26, rx: 6, class: `node ${one.fate} ${path}` }),
        mark("text", { x: x + 7, y: y + 5, class: `word ${one.fate}` }, word.length > 9 ? `${word.slice(0, 8)}…` : word),
        mark("text", { x: x + 106, y: y + 4, class: `tick end ${one.fate}` }, one.logP.toFixed(1).replace("-", "−")),
      );
    });
  });
  return svg;
}

const WORDY = ["beam", "best output", "output"];
const headings = (...texts) => texts.map((text) => made("th", { scope: "col", text, className: WORDY.includes(text) ? "" : "number" }));

function finishedTable(search, found, count, alpha) {
  const ended = found.steps.slice(0, count).flatMap((step, number) => step.filter(({ fate }) => fate === "finished").map((one) => ({ ...one, length: number + 1 })));
  const scored = ended.map((one) => ({ ...one, score: one.logP / lengthPenalty(one.length, alpha) })).sort((a, b) => b.score - a.score);
  if (!scored.length) return made("p", { className: "quiet", text: "No hypothesis has ended yet." });
  const head = headings("output", "score", "log P", "|Y|", "penalty");
  const rows = scored.map((one, place) =>
    made("tr", { className: place ? "" : "on" }, made("td", { text: textOf(search, one.tokens) || "(nothing)", dir: "auto" }), ...[shownNumber(one.score, 3), shownNumber(one.logP, 3), String(one.length), shownNumber(lengthPenalty(one.length, alpha), 3)].map((text) => made("td", { className: "number", text }))),
  );
  const isOver = count === found.steps.length;
  const why = isOver && found.bound > -Infinity && found.finished[0]?.score > found.bound ? made("p", { className: "quiet" }, "The search stops: even if the best beginning that has not ended lost nothing more, up to the longest length allowed, its score could only reach ", strong(shownNumber(found.bound, 3)), ", below the best score.") : "";
  return made("div", {}, made("h3", { text: "Ended, best score first" }), made("div", { className: "scroll wide", tabindex: "0", role: "group", "aria-label": "Finished hypotheses" }, made("table", {}, made("tr", {}, ...head), ...rows)), why);
}
