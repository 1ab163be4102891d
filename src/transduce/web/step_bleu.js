// Step 6: BLEU worked out on a translation that the learner writes.

import { meanOf, shownNumber } from "./algebra.js";
import { bleuOf, countsOf } from "./bleu.js";
import { numberExercise } from "./exercises.js";
import { bar, equationOf, paragraph, stepElement, strong } from "./learn_parts.js";
import { made } from "./paint.js";

const PAIRS = [
  ["the cat is on the mat .", "the cat is on the mat ."],
  ["a dog plays here", "there is a dog that plays in the garden today"],
];

export function createBleuStep(app) {
  const equation = equationOf("BLEU is 100 times the brevity penalty times the geometric mean of the four precisions", [
    "BLEU = 100 · ",
    ["BP", "brevity", "BP, the brevity penalty: 1 if the translation is at least as long as the reference, else e^(1 − r/c) for lengths r of the reference and c of the translation."],
    " · ( ",
    ["p₁ · p₂ · p₃ · p₄", "precisions", "p_n: of all runs of n words of the translation, the share that the reference has too. A run counts at most as often as the reference has it."],
    " )^¼",
  ]);
  const own = area("your translation");
  const reference = area("the reference, a translation by a person");
  const source = made("p", { className: "quiet" });
  const model = made("button", { type: "button", text: "Take the model's translation" });
  model.addEventListener("click", () => {
    own.box.value = app.lesson()?.report.json.target.text ?? "";
    work();
  });
  const result = made("div");
  let shown = null;

  function area(label) {
    const id = `text-${label.replace(/\W+/g, "-")}`;
    const box = made("textarea", { id, rows: 2, dir: "auto", spellcheck: "false" });
    box.addEventListener("input", () => work());
    return { box, element: made("div", { className: "area" }, made("label", { for: id, text: label }), box) };
  }

  function render() {
    const lesson = app.lesson();
    if (!lesson || lesson === shown) return;
    shown = lesson;
    source.textContent = `The sentence: ${lesson.report.json.source.text}`;
    own.box.value = lesson.report.json.target.text;
    reference.box.value = lesson.reference ?? lesson.report.json.target.text;
    work();
  }

  function work() {
    const pair = [own.box.value, reference.box.value];
    const found = bleuOf([pair]);
    const counts = countsOf(...pair);
    const rows = counts.orders.flatMap(({ ngrams, matched, total }, index) => [
      made(
        "tr",
        {},
        made("th", { scope: "row", text: `${index + 1} ${index ? "words" : "word"}` }),
        made("td", { className: "number", text: `${matched} of ${total}` }),
        made("td", {}, bar(found.precisions[index], shownNumber(100 * found.precisions[index], 1))),
      ),
      made("tr", {}, made("td", { colspan: 3 }, made("div", { className: "ngrams" }, ...ngrams.map(ngramChip)))),
    ]);
    const zero = found.precisions.findIndex((precision) => precision === 0);
    result.replaceChildren(
      made("div", { className: "scroll wide", tabindex: "0", role: "group", "aria-label": "Matches by length" }, made("table", { className: "matches" }, made("tr", {}, ...["runs of", "matched", "precision, %"].map((text) => made("th", { scope: "col", text }))), ...rows)),
      made("p", { className: "quiet", text: "Filled: the reference has it. Struck out: it has not. Dashed: it has it, but less often than the translation. A point or comma counts as a word." }),
      made("p", { className: "how", role: "status" }, `Length ${found.length}, reference ${found.referenceLength}: BP = ${shownNumber(found.brevity, 3)}. `, strong(`BLEU = ${found.score.toFixed(1)}`), zero >= 0 && found.length ? `. No run of ${zero + 1} words matches, so the product is 0, and this says nothing against the translation: one short sentence is too little for BLEU.` : "."),
    );
    equation.light(found.brevity < 1 ? ["brevity"] : ["precisions"]);
  }

  const corpus = bleuOf(PAIRS);
  const alone = PAIRS.map((pair) => bleuOf([pair]).score);
  const exercise = numberExercise({
    ask: "A translation shorter than its reference gets the brevity penalty BP = e^(1 − r/c), for r words of the reference and c of the translation. A translation has 9 words and its reference 10. What is BP?",
    label: "BP = ",
    answer: () => Math.exp(1 - 10 / 9),
    within: 0.0015,
    near: [
      [() => 0.9, "Not 9/10 but e^(1 − 10/9)."],
      [() => Math.exp(1 - 9 / 10), "The length of the reference stands above: r/c = 10/9. A penalty is at most 1."],
      [() => 1, "It is 1 only if the translation is at least as long as the reference."],
    ],
    explain: () => "e^(1 − 10/9) = e^(−0.111) = 0.895.",
  });
  const element = stepElement(app, {
    number: 6,
    question: "How good is a translation?",
    say: ["BLEU counts which runs of one to four words a translation shares with the translation that a person wrote. Write a translation of your own, or change the model's word by word."],
    equation,
    picture: [source, made("div", { className: "two" }, own.element, reference.element), made("p", {}, model), result],
    code: [["bleu", "We count with sacrebleu, as most papers do (for a test set; this page counts one sentence, without its smoothing):"]],
    wrong: [
      {
        claim: "BLEU is a number between 0 and 1.",
        truth: paragraph("The paper's 28.4 is on the scale from 0 to 100, as nearly all papers give it. 0.284 is the same score on the other scale. Say which you mean."),
      },
      {
        claim: "The BLEU of a test set is the mean of the BLEU of its sentences.",
        truth: paragraph(`Two pairs: “${PAIRS[0][0]}”, exactly as its reference, and “${PAIRS[1][0]}” for “${PAIRS[1][1]}”. Alone they have ${alone.map((score) => score.toFixed(1)).join(" and ")}, in the mean ${meanOf(alone).toFixed(1)}. Together they have `, strong(corpus.score.toFixed(1)), ": all counts are added first, then divided."),
      },
      {
        claim: "A BLEU of 100 is a perfect translation, and a low BLEU a bad one.",
        truth: paragraph("It says how much wording is shared with one reference. “He turned the light off” is as right as “He switched the light off” and shares less. Compare systems on the same test set, with the same tokens, and name the settings."),
      },
    ],
    exercise,
  });
  return { element, render };
}

function ngramChip({ ngram, count, matched }) {
  const kind = matched === 0 ? "missing" : matched < count ? "partly" : "found";
  const text = count > 1 ? `${ngram} (${matched} of ${count})` : ngram;
  return made("span", { className: `ngram ${kind}`, text, dir: "auto", title: `${ngram}: ${matched} of ${count} counted` });
}
