// Step 1: what self-attention computes, with two words whose numbers can be edited, and then in a real head.

import { attentionSteps, shownNumber } from "./algebra.js";
import { numberExercise } from "./exercises.js";
import { equationOf, paragraph, stepElement, strong, written } from "./learn_parts.js";
import { made } from "./paint.js";
import { createRealHead } from "./step_real_head.js";

const WORDS = ["Hello", "World"];
const GIVEN = {
  X: [[1, 0, 1, 0], [0, 1, 0, 1]],
  WQ: [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9], [0.1, 0.2, 0.3]],
  WK: [[0.2, 0.3, 0.4], [0.5, 0.6, 0.7], [0.8, 0.9, 0.1], [0.2, 0.3, 0.4]],
  WV: [[0.3, 0.4, 0.5], [0.6, 0.7, 0.8], [0.9, 0.1, 0.2], [0.3, 0.4, 0.5]],
};
const MATRIX_NAMES = { X: "X", WQ: "W^Q", WK: "W^K", WV: "W^V", Q: "Q", K: "K", V: "V", scores: "Q Kᵀ", scaled: "Q Kᵀ / √dₖ", weights: "softmax", Z: "Z" };
const copyOf = (matrices) => Object.fromEntries(Object.entries(matrices).map(([name, rows]) => [name, rows.map((row) => [...row])]));

// The stages, with what is computed in each: the terms at work, the matrices shown, and what to look at.
export const STAGES = [
  {
    name: "vectors",
    terms: [],
    given: ["X"],
    made: [],
    says: "Every word is a row of numbers. Here four numbers each, chosen by hand. A trained model learns them.",
  },
  {
    name: "q, k, v",
    terms: ["Q", "K", "V"],
    given: ["X", "WQ", "WK", "WV"],
    made: ["Q", "K", "V"],
    says: "Three matrices turn each word into a query (what it looks for), a key (what it offers) and a value (what it gives). The matrices are learned, and the same for every word.",
  },
  {
    name: "scores",
    terms: ["Q", "K"],
    given: [],
    made: ["Q", "K", "scores"],
    says: "Each query is multiplied with each key: products of components, added up. Row: who asks. Column: who is asked.",
  },
  {
    name: "scale",
    terms: ["scale"],
    given: [],
    made: ["scores", "scaled"],
    says: "Each score is divided by √dₖ. A key has dₖ = 3 numbers here, so by √3 = 1.732. Step “2 scale” at the top of this page shows why.",
  },
  {
    name: "softmax",
    terms: ["softmax"],
    given: [],
    made: ["scaled", "weights"],
    says: "The softmax turns each row of scores into weights: all positive, and together 1.",
  },
  {
    name: "output",
    terms: ["V"],
    given: [],
    made: ["weights", "V", "Z"],
    says: "Each word becomes the sum of all values, each times its weight. This is the output. The weights alone are not.",
  },
];

export function createAttentionStep(app) {
  let matrices = copyOf(GIVEN);
  let stage = 0;
  const equation = equationOf("Attention of Q, K and V is the softmax of Q times K transposed, divided by the root of d k, times V", [
    "Attention(Q, K, V) = ",
    ["softmax", "softmax", "softmax: turns a row of scores into weights that are positive and add up to 1."],
    "( ",
    ["Q", "Q", "Q: the queries, one row for each position that looks."],
    " ",
    ["Kᵀ", "K", "K: the keys, one row for each position that can be looked at. ᵀ turns rows into columns, so that each query meets each key."],
    " / ",
    ["√dₖ", "scale", "√dₖ: the square root of the width of a key, that is, of how many numbers it has."],
    " ) ",
    ["V", "V", "V: the values. Without this factor there are weights but no output."],
  ]);
  const stages = made("div", { className: "stages", role: "group", "aria-label": "The six small steps of self-attention" });
  STAGES.forEach(({ name }, index) => {
    const button = made("button", { type: "button", text: `${index + 1} ${name}` });
    button.addEventListener("click", () => show(index));
    stages.append(button);
  });
  const says = made("p", { className: "stage-says" });
  const board = made("div", { className: "board" });
  const how = made("p", { className: "how", role: "status" });
  const remark = made("p", { className: "remark" });
  const reset = made("button", { type: "button", text: "Put the first numbers back" });
  reset.addEventListener("click", () => {
    matrices = copyOf(GIVEN);
    show(stage);
  });
  const real = createRealHead(app);

  function show(next) {
    stage = next;
    const { terms, given, made: results, says: text } = STAGES[stage];
    [...stages.children].forEach((button, index) => button.setAttribute("aria-pressed", String(index === stage)));
    says.textContent = text;
    how.textContent = results.length ? "Point at a result, or press it, to see how it is made." : "Change a number and watch the later steps.";
    equation.light(terms);
    board.replaceChildren(...given.map(editable), ...results.map(resultTable));
    refresh();
    real.light(terms);
  }

  function editable(name) {
    const rows = name === "X" ? WORDS : matrices[name].map(() => "");
    const table = made("table", { className: "matrix-table" }, made("caption", {}, ...written(name === "X" ? "X: the words" : `${MATRIX_NAMES[name]}: learned`)));
    matrices[name].forEach((row, r) => {
      const line = made("tr", {}, ...(rows[r] ? [made("th", { scope: "row", text: rows[r] })] : []));
      row.forEach((value, c) => {
        const input = made("input", { type: "number", step: "0.1", value, "aria-label": `${MATRIX_NAMES[name]} row ${r + 1} column ${c + 1}` });
        input.addEventListener("input", () => {
          if (Number.isFinite(input.valueAsNumber)) matrices[name][r][c] = input.valueAsNumber;
          refresh();
        });
        line.append(made("td", {}, input));
      });
      table.append(line);
    });
    return table;
  }

  function resultTable(name) {
    const columns = { scores: WORDS, scaled: WORDS, weights: WORDS }[name];
    const table = made("table", { className: "matrix-table result", "data-name": name }, made("caption", { text: MATRIX_NAMES[name] }));
    if (columns) table.append(made("tr", {}, made("td"), ...columns.map((text) => made("th", { scope: "col", text }))));
    WORDS.forEach((word, r) => {
      const line = made("tr", {}, made("th", { scope: "row", text: word }));
      for (let c = 0; c < (columns ? 2 : 3); c++) {
        const cell = made("button", { type: "button", "data-cell": `${name} ${r} ${c}` });
        const explain = () => {
          how.replaceChildren(...written(arithmetic(name, r, c)));
          light(name, r, c);
        };
        for (const event of ["click", "focus", "pointerenter"]) cell.addEventListener(event, explain);
        line.append(made("td", {}, cell));
      }
      table.append(line);
    });
    return table;
  }

  // Writes the numbers anew into the tables that are there, so that an input keeps the focus.
  function refresh() {
    const steps = attentionSteps(matrices);
    for (const cell of board.querySelectorAll("[data-cell]")) {
      const [name, r, c] = cell.dataset.cell.split(" ");
      cell.textContent = shownNumber(steps[name][r][c]);
      cell.setAttribute("aria-label", `${MATRIX_NAMES[name]} ${WORDS[r]} ${Number(c) + 1}: ${cell.textContent}`);
    }
    const isSame = steps.Z[0].every((value, c) => Math.abs(value - steps.Z[1][c]) < 1e-9);
    remark.hidden = stage < 5;
    remark.replaceChildren(...written(isSame
      ? "Both rows of the output Z are equal here. That is a coincidence of these numbers: the difference of the two keys is at a right angle to the difference of the two queries. Change any number of W^Q and it is gone."
      : "The two words now have different outputs: their queries ask for different things."));
  }

  function arithmetic(name, r, c) {
    const steps = attentionSteps(matrices);
    const value = shownNumber(steps[name][r][c]);
    const sum = (left, right) => left.map((part, index) => `${shownNumber(part, 2)} × ${shownNumber(right[index], 2)}`).join(" + ");
    const column = (rows) => rows.map((row) => row[c]);
    const ofWord = `${WORDS[r]}, ${MATRIX_NAMES[name]}: `;
    if (name === "scores") return `q of ${WORDS[r]} · k of ${WORDS[c]} = ${sum(steps.Q[r], steps.K[c])} = ${value}`;
    if (name === "scaled") return `${shownNumber(steps.scores[r][c])} / √3 = ${value}`;
    if (name === "weights") {
      const powers = steps.scaled[r].map((score) => `e^(${shownNumber(score)})`);
      return `${powers[c]} / (${powers.join(" + ")}) = ${value}; the row adds up to 1`;
    }
    if (name === "Z") return `${ofWord}${sum(steps.weights[r], column(steps.V))} = ${value}`;
    return `${ofWord}${sum(matrices.X[r], column(matrices[`W${name}`]))} = ${value}`;
  }

  // Marks the rows and columns from which a result is made.
  function light(name, r, c) {
    const uses = {
      scores: (own, row, column) => (own === "Q" && row === r) || (own === "K" && row === c),
      scaled: (own, row, column) => own === "scores" && row === r && column === c,
      weights: (own, row) => own === "scaled" && row === r,
      Z: (own, row, column) => (own === "weights" && row === r) || (own === "V" && column === c),
    }[name];
    for (const cell of board.querySelectorAll("[data-cell]")) {
      const [own, row, column] = cell.dataset.cell.split(" ");
      const isItself = own === name && Number(row) === r && Number(column) === c;
      cell.classList.toggle("lit", isItself || Boolean(uses?.(own, Number(row), Number(column))));
    }
  }

  const exercise = numberExercise({
    ask: "A query is q = (1, 0, 2) and a key is k = (0.5, 3, 1). What is their score before the scale, q · k?",
    label: "q · k = ",
    answer: () => 2.5,
    within: 0.005,
    near: [
      [() => 2.5 / Math.sqrt(3), "You divided by √3 already. The question is about the score before the scale."],
      [() => 5.5, "The middle product is 0 × 3 = 0, not 3."],
      [() => 7.5, "Multiply component by component first, then add: 1 × 0.5 + 0 × 3 + 2 × 1."],
      [() => 4.5, "You added the components of k. Multiply each with the one of q above it."],
    ],
    explain: () => "1 × 0.5 + 0 × 3 + 2 × 1 = 2.5. Divided by √3 it would be 1.443.",
  });
  const element = stepElement(app, {
    number: 1,
    question: "What does self-attention compute?",
    say: ["A word alone does not say what it means in a sentence. Self-attention lets each word gather from all words of its sentence. Six small steps do it. Walk through them with two words; you can change every number."],
    equation,
    picture: [stages, says, made("div", { className: "scroll board-frame", tabindex: "0", role: "group", "aria-label": "The matrices of this step" }, board), how, remark, made("p", {}, reset), made("h3", { text: "The same six small steps in a real head" }), real.element],
    code: [
      ["attend", "Scores, already scaled:"],
      ["weighted", "The output, weights times values:"],
    ],
    wrong: [
      {
        claim: "For these two words, Q Kᵀ = [[1.4, 1.58], [1.04, 1.18]].",
        truth: paragraph("Notes with these numbers are passed around. Press “3 scores” above and then the first cell: 0.8 × 1 + 1 × 1.2 + 1.2 × 0.5 = 2.6, not 1.4. The rest of such notes is wrong too: the output is ", strong("(1.042, 0.816, 1.016)"), " for both words."),
      },
      {
        claim: "Attention is softmax(Q Kᵀ / √dₖ).",
        truth: paragraph("That is “5 softmax”: a row of weights, one number for each word. The output has as many numbers as a value has. Only “6 output”, times V, makes it. Count the columns: two in “5 softmax”, three in “6 output”."),
      },
      {
        claim: "The weights explain why the model decided as it did.",
        truth: paragraph("A weight says how much of a value was taken. A large weight on a small value moves little. In step “4 heads” at the top of this page you remove heads and see what really changes."),
      },
    ],
    exercise,
  });
  show(0);
  return { element, render: () => real.render() };
}
