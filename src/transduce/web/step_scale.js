// Step 2: the scale. Wider vectors have larger products, and large scores saturate the softmax.

import { deviationOf, dot, meanOf, normalDraws, shownNumber, softmaxOf } from "./algebra.js";
import { numberExercise } from "./exercises.js";
import { bar, equationOf, paragraph, slider, stepElement, strong } from "./learn_parts.js";
import { made } from "./paint.js";
import { range } from "./state.js";

const DRAWS = 60; // queries with their keys, for the means
const WIDTHS = range(11).map((power) => 2 ** power);
const [SEED, MOST_KEYS] = [7, 32];

// Scores of random queries and keys with components of mean 0 and variance 1: [draw][key].
export function randomScores(width, keys) {
  const draw = normalDraws(SEED);
  const vector = () => Array.from({ length: width }, draw);
  return range(DRAWS).map(() => {
    const query = vector();
    return range(keys).map(() => dot(query, vector()));
  });
}

// The largest slope of each row's softmax, ∂y/∂x = y (1 − y) at most 1/4, in the mean.
export function meanSlope(rows) {
  return meanOf(rows.map((row) => Math.max(...softmaxOf(row).map((weight) => weight * (1 - weight)))));
}

export function createScaleStep(app) {
  const equation = equationOf("softmax of Q times K transposed, divided by the root of d k, times V", [
    ["softmax", "softmax", "softmax: where one score is far above the others, its weight is nearly 1 and all others nearly 0."],
    "( ",
    ["Q Kᵀ", "scores", "Q Kᵀ: the scores. Each is a sum of dₖ products, so more components make larger sums."],
    " / ",
    ["√dₖ", "scale", "√dₖ: brings the scores back to the size that one product has, for every width."],
    " ) V",
  ]);
  const width = slider({ label: "width of a key, dₖ", min: 0, max: 10, value: 6, shown: (power) => String(2 ** power), onInput: render });
  const keys = slider({ label: "number of keys", min: 2, max: MOST_KEYS, value: 8, onInput: render });
  const facts = made("div", { className: "two" });
  const curve = made("div", { className: "curve" });
  const ownBox = made("div");
  const known = new Map();

  const figuresOf = (d, n) => {
    const key = `${d} ${n}`;
    if (!known.has(key)) {
      const scores = randomScores(d, n);
      const scaled = scores.map((row) => row.map((score) => score / Math.sqrt(d)));
      const of = (rows) => ({ row: rows[0], deviation: deviationOf(rows.flat()), slope: meanSlope(rows) });
      known.set(key, { plain: of(scores), scaled: of(scaled) });
    }
    return known.get(key);
  };

  function render() {
    const [d, n] = [2 ** width.get(), keys.get()];
    const found = figuresOf(d, n);
    facts.replaceChildren(side("without the scale", found.plain), side(`divided by √${d} = ${shownNumber(Math.sqrt(d), 2)}`, found.scaled));
    curve.replaceChildren(slopeCurve(d, n, figuresOf, curve.clientWidth));
    const isHard = found.plain.slope < 0.1;
    equation.light(["scale"], isHard ? "Without the scale the softmax is saturated here: hardly any gradient is left to learn from." : "");
    renderOwn();
  }

  // The model's own scores of one word, with and without its scale.
  async function renderOwn() {
    const lesson = app.lesson();
    if (!lesson) return;
    const stack = lesson.report.stacks.encoder;
    const numbers = await lesson.numbers("encoder", 0, 0);
    if (lesson !== app.lesson()) return;
    const d = numbers.query[0].length;
    const rows = numbers.query.map((query) => numbers.key.map((key) => dot(query, key)));
    const scaled = rows.map((row) => row.map((score) => score / Math.sqrt(d)));
    const of = (all) => ({ row: all[0], deviation: deviationOf(all.flat()), slope: meanSlope(all) });
    ownBox.replaceChildren(
      made("h3", { text: "And in the model" }),
      made("p", { text: `Head 1 of its first layer, dₖ = ${d}, for “${stack.queries[0].text}” in your sentence. This head learned with the scale; take it away and its weights collapse onto few words.` }),
      made("div", { className: "two" }, side("without the scale", of(rows), stack.keys), side(`divided by √${d}`, of(scaled), stack.keys)),
    );
  }

  const overflow = () => {
    const naive = [1000, 999].map(Math.exp);
    const [first, second] = softmaxOf([1000, 999]);
    return paragraph(
      `For scores (1000, 999), e^1000 on this machine is ${naive[0]}. Subtract the row's largest score first, which changes nothing, and the softmax is `,
      strong(`(${first.toFixed(3)}, ${second.toFixed(3)})`),
      ". Every softmax does that, with or without the scale. The scale is there for the gradient: watch the slope above.",
    );
  };
  const unitSize = () => {
    const draw = normalDraws(SEED);
    const row = range(512).map(() => draw() / Math.sqrt(512));
    return paragraph(
      "The matrix of embeddings is also the last one before the softmax, so it is drawn with standard deviation 1/√d_model. A row drawn so on this machine, of 512 numbers: size ",
      strong(deviationOf(row).toFixed(3)),
      ", some of them negative. Times √512: ",
      strong(deviationOf(row.map((value) => value * Math.sqrt(512))).toFixed(2)),
      ". Only then is a word as large as the sines and cosines between −1 and 1 that tell its position.",
    );
  };
  const exercise = numberExercise({
    ask: "The base model of the paper has dₖ = 64. By which number are its scores divided?",
    label: "divided by ",
    answer: () => 8,
    within: 0.005,
    near: [
      [() => 64, "That is dₖ itself. The variance of a score grows like dₖ, its size like √dₖ."],
      [() => 512, "That is the width of the model. Each of its 8 heads has 512 / 8 = 64."],
      [() => Math.sqrt(512), "That is √512, of the width of the model. A key of one head has 64 numbers."],
      [() => 0.125, "You give the factor, 1/8. The scores are divided by its inverse."],
    ],
    explain: () => "√64 = 8.",
  });
  const element = stepElement(app, {
    number: 2,
    question: "Why divide by √dₖ?",
    say: ["Take random queries and keys. Move the slider of dₖ, how many numbers a key has, and compare: first the softmax of the plain scores, then that of the scaled ones. Then drag the number of keys."],
    equation,
    picture: [made("div", { className: "sliders" }, width.element, keys.element), facts, curve, ownBox],
    code: [
      ["scale", "The scale, from the width of a query, which is that of a key:"],
      ["softmax", "The softmax subtracts the row's largest score:"],
    ],
    wrong: [
      { claim: "The scale keeps e^x from overflowing.", truth: overflow() },
      {
        claim: "Scores are divided by the root of the length of the query, or of the sentence.",
        truth: paragraph("Drag “number of keys” above: the size of the scores stays. Drag dₖ: it changes. The divisor is the root of the width of a key, a setting of the model. It is the same for every sentence."),
      },
      {
        claim: "dₖ is the length of a word vector, dᵥ that of a target word, and m the number of target words.",
        truth: paragraph("A word vector has d_model numbers, 512 in the base model. A head projects it to dₖ = 64 for queries and keys, and to dᵥ = 64 for values, of source words as of target words. m is the number of queries."),
      },
      { claim: "Embeddings are multiplied by √d_model because they lie between 0 and 1, or have length 1.", truth: unitSize() },
    ],
    exercise,
  });
  return { element, render };
}

function side(title, { row, deviation, slope }, tokens = null) {
  const weights = softmaxOf(row);
  const bars = weights.map((weight, key) =>
    made("li", {}, made("span", { className: "bar-name", text: tokens ? tokens[key].text : `key ${key + 1}`, dir: "auto" }), bar(weight, weight.toFixed(2))),
  );
  return made(
    "div",
    { className: "side" },
    made("h3", { text: title }),
    made("p", { className: "figure" }, "size of the scores (standard deviation): ", made("b", { text: shownNumber(deviation, 2) })),
    made("p", { className: "figure" }, "slope y (1 − y) of the softmax, mean over all queries, at most 0.25: ", made("b", { text: slope < 0.00001 ? "below 0.00001" : shownNumber(slope, slope < 0.01 ? 5 : 3) })),
    made("ul", { className: "bars", "aria-label": "weights of one query" }, ...bars),
  );
}

function slopeCurve(chosen, n, figuresOf, room) {
  const space = "http://www.w3.org/2000/svg";
  const [width, height, left, bottom, top] = [Math.min(Math.max(room, 320), 960), 230, 46, 34, 14];
  const x = (d) => left + (Math.log2(d) / 10) * (width - left - 16);
  const y = (slope) => top + (1 - slope / 0.25) * (height - bottom - top);
  const mark = (name, attributes, text) => {
    const shape = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, String(value));
    if (text !== undefined) shape.textContent = text;
    return shape;
  };
  const svg = mark("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Slope of the softmax by width: with the scale it stays, without it falls. At dₖ = ${chosen}: ${figuresOf(chosen, n).plain.slope.toFixed(3)} without, ${figuresOf(chosen, n).scaled.slope.toFixed(3)} with the scale.` });
  for (const slope of [0, 0.125, 0.25]) {
    svg.append(mark("line", { x1: left, x2: width - 16, y1: y(slope), y2: y(slope), class: "rule" }), mark("text", { x: left - 6, y: y(slope) + 4, class: "tick end" }, String(slope)));
  }
  for (const d of [1, 4, 16, 64, 256, 1024]) svg.append(mark("text", { x: x(d), y: height - 14, class: "tick middle" }, String(d)));
  svg.append(mark("line", { x1: x(chosen), x2: x(chosen), y1: top, y2: height - bottom, class: "here" }));
  for (const [name, text] of [["scaled", "with the scale"], ["plain", "without"]]) {
    const points = WIDTHS.map((d) => `${x(d)},${y(figuresOf(d, n)[name].slope)}`).join(" ");
    svg.append(mark("polyline", { points, class: `line ${name}` }));
    const [at, anchor] = name === "scaled" ? [1024, "end"] : [256, ""];
    svg.append(mark("text", { x: x(at) + 4, y: y(figuresOf(at, n)[name].slope) - 9, class: `tick ${anchor} ${name}` }, text));
  }
  return made("figure", {}, svg, made("figcaption", { text: "Slope of the softmax (mean of 60 queries) by dₖ. A slope of 0 means: nothing is learned through this softmax." }));
}
