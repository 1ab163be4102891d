// Step 3: masks, and the three uses of attention.

import { shownNumber, softmaxOf } from "./algebra.js";
import { gridExercise } from "./exercises.js";
import { bar, chooser, equationOf, paragraph, stepElement, strong, weightGrid } from "./learn_parts.js";
import { stepsOf } from "./numbers.js";
import { made } from "./paint.js";
import { groupsOf } from "./picture.js";
import { range } from "./state.js";

const SCORES = [[1, 0, 0.5], [0, 2, 1], [1, 1, 1]];
const POSITIONS = ["1", "2", "3"];
export const MASKS = {
  "nothing hidden": () => false,
  "nothing later": (row, column) => column > row,
  "position 3 is padding": (_, column) => column === 2,
};
const USES = [
  { name: "encoder", title: "1. The encoder looks at itself", says: "Every source word sees every source word, before and after it. Nothing is masked but padding." },
  { name: "decoder", title: "2. The decoder looks at itself", says: "A position sees the words up to its own and predicts the next one. A row below has the name of the word that it predicts, so it stops before that word. This is the only place for the causal mask." },
  { name: "cross", title: "3. The decoder looks at the source", says: "Every position of the translation sees the whole source, also the position that writes the first word. Nothing is masked but padding." },
];

export function createMasksStep(app) {
  const equation = equationOf("softmax of the scores plus a mask, times V", [
    "softmax( Q Kᵀ / √dₖ + ",
    ["mask", "mask", "mask: 0 where a query may look, −∞ where it may not. e^−∞ = 0, so a hidden key gets weight 0 and the others share the whole 1."],
    " ) V",
  ]);
  let isHidden = SCORES.map((row) => row.map(() => false));
  const presets = made("div", { className: "stages", role: "group", "aria-label": "Masks" });
  for (const [name, hides] of Object.entries(MASKS)) {
    const button = made("button", { type: "button", text: name });
    button.addEventListener("click", () => {
      isHidden = SCORES.map((row, r) => row.map((_, c) => hides(r, c)));
      renderExample();
    });
    presets.append(button);
  }
  const example = made("div", { className: "two" });
  let [layer, head, isOpen] = [0, 0, false];
  const choices = {
    layer: chooser("layer", (next) => ((layer = next), render())),
    head: chooser("head", (next) => ((head = next), render())),
  };
  const opened = made("input", { type: "checkbox", id: "open-mask" });
  opened.addEventListener("change", () => ((isOpen = opened.checked), render()));
  const uses = made("div", { className: "uses" });
  const leak = made("p", { className: "how", role: "status" });

  function renderExample() {
    const focused = document.activeElement?.dataset?.place;
    const scores = made("table", { className: "matrix-table result" }, made("caption", { text: "scores: press a cell to hide it" }));
    const weights = made("table", { className: "matrix-table result" }, made("caption", { text: "weights after the softmax" }));
    const header = () => made("tr", {}, made("td"), ...POSITIONS.map((text) => made("th", { scope: "col", text: `key ${text}` })));
    scores.append(header());
    weights.append(header());
    SCORES.forEach((row, r) => {
      const masked = row.map((score, c) => (isHidden[r][c] ? -Infinity : score));
      const [left, right] = [0, 1].map(() => made("tr", {}, made("th", { scope: "row", text: `query ${r + 1}` })));
      const found = softmaxOf(masked);
      row.forEach((_, c) => {
        const cell = made("button", { type: "button", text: shownNumber(masked[c]), "data-place": `${r} ${c}`, "aria-pressed": String(isHidden[r][c]), "aria-label": `query ${r + 1}, key ${c + 1}: ${isHidden[r][c] ? "hidden" : `score ${row[c]}`}` });
        cell.addEventListener("click", () => {
          isHidden[r][c] = !isHidden[r][c];
          renderExample();
        });
        left.append(made("td", { className: isHidden[r][c] ? "hidden-cell" : "" }, cell));
        right.append(made("td", {}, bar(found[c], found[c].toFixed(3))));
      });
      scores.append(left);
      weights.append(right);
    });
    example.replaceChildren(...[scores, weights].map((table) => made("div", { className: "scroll wide" }, table)));
    if (focused) example.querySelector(`[data-place="${focused}"]`)?.focus();
    const isEmpty = isHidden.some((row) => row.every(Boolean));
    const count = isHidden.flat().filter(Boolean).length;
    equation.light(count ? ["mask"] : [], isEmpty ? "A query that may see nothing: the equation would divide 0 by 0. Our code gives it zeros." : "");
  }

  async function render() {
    const lesson = app.lesson();
    if (!lesson) return;
    const { stacks } = lesson.report;
    const layers = Math.max(...USES.map(({ name }) => stacks[name].layers));
    choices.layer.fill(range(layers).map((index) => `layer ${index + 1}`), (layer = Math.min(layer, layers - 1)));
    choices.head.fill(range(stacks.cross.heads).map((index) => `head ${index + 1}`), (head = Math.min(head, stacks.cross.heads - 1)));
    const decoder = stacks.decoder;
    const place = [Math.min(layer, decoder.layers - 1), head];
    const numbers = await lesson.numbers("decoder", ...place);
    if (lesson !== app.lesson()) return;
    const open = decoder.queries.map((_, q) => stepsOf(numbers, () => true, q, 0).weights);
    uses.replaceChildren(
      ...USES.map(({ name, title, says }) => {
        const stack = stacks[name];
        const [rows, columns] = [stack.queries, stack.keys].map((tokens) => groupsOf(tokens, {}, Infinity).map(({ text }) => text));
        const isOpened = isOpen && name === "decoder";
        const own = Math.min(layer, stack.layers - 1);
        const weight = isOpened ? (q, k) => open[q][k] : (q, k) => stack.weight(own, head, q, k);
        const isVisible = isOpened ? () => true : stack.isVisible;
        return made("section", { className: "use" }, made("h4", { text: title }), made("p", { text: says }), weightGrid({ label: `${name}: rows look, columns are looked at`, rows, columns, weight, isVisible }));
      }),
    );
    const later = open.slice(0, -1).map((row, q) => row.reduce((sum, weight, k) => sum + (decoder.isVisible(q, k) ? 0 : weight), 0));
    const most = later.indexOf(Math.max(...later));
    leak.textContent = isOpen
      ? `Without its mask this head gives up to ${(100 * later[most]).toFixed(0)} % of its weight to words that are not written yet (the row that predicts “${decoder.queries[most].text}”). In training it would read the answer there, and at translation time there is nothing to read.`
      : "With the mask every hatched cell has weight 0.";
  }

  const exercise = gridExercise({
    ask: "Mark every cell that the decoder's self-attention must hide, for four positions. Each position sees itself and those before it.",
    rows: ["position 1", "position 2", "position 3", "position 4"],
    columns: ["position 1", "position 2", "position 3", "position 4"],
    isWanted: (row, column) => column > row,
    mistakes: ({ row, column }) =>
      row === column
        ? "A position sees itself: its input is the word before the one that it predicts, because the outputs are shifted right."
        : column > row
          ? `Position ${row + 1} must not see position ${column + 1}, which comes later.`
          : `Position ${row + 1} may see position ${column + 1}, which comes before it.`,
    explain: () => "Six cells, all above the diagonal. So all positions can be trained at once, and none sees its answer.",
  });
  const element = stepElement(app, {
    number: 3,
    question: "Who may look where?",
    say: ["A hidden key has the score −∞ before the softmax. Press cells to hide them, and watch how the rest of the row shares the weight. Two things are hidden in practice: words that are not written yet, and padding, which fills short sentences of a batch up to the longest."],
    equation,
    picture: [
      presets,
      example,
      made("h3", { text: "The three uses in the model" }),
      made("div", { className: "choices" }, choices.layer.element, choices.head.element, made("label", { className: "check" }, opened, " take the causal mask away")),
      leak,
      uses,
    ],
    code: [
      ["causal", "What a position of the translation may see:"],
      ["mask", "Hidden scores become −∞:"],
    ],
    wrong: [
      {
        claim: "The decoder uses masked attention over the encoder's output.",
        truth: paragraph("Look at use 3: its first row already spreads over the whole source. The mask is on use 2, the decoder's look at itself. Over the encoder's output nothing is hidden but padding."),
      },
      {
        claim: "To mask, set the weights to zero after the softmax.",
        truth: paragraph("Then the row no longer adds up to 1. Hide key 3 of query 1 above: the weights become 0.731 and 0.269. Zeroing after the softmax would leave 0.506 and 0.186, together ", strong("0.693"), "."),
      },
      {
        claim: "‘Transduction’ in the paper is transductive inference.",
        truth: paragraph("Transductive inference reasons from cases to cases. In the paper, transduction is turning one sequence into another, such as a sentence into its translation: the three uses above, together."),
      },
    ],
    exercise,
  });
  renderExample();
  return { element, render };
}
