// The learning page: six steps, one at a time, on one sentence. The address holds the step and the sentence.

import { carriedNumbers } from "./numbers.js";
import { made, themeColors } from "./paint.js";
import { readReport } from "./report.js";
import { createAttentionStep } from "./step_attention.js";
import { createBleuStep } from "./step_bleu.js";
import { createHeadsStep } from "./step_heads.js";
import { createMasksStep } from "./step_masks.js";
import { createScaleStep } from "./step_scale.js";
import { createSearchStep } from "./step_search.js";

const MAKERS = [createAttentionStep, createScaleStep, createMasksStep, createHeadsStep, createSearchStep, createBleuStep];
const STEP_NAMES = ["attention", "scale", "masks", "heads", "search", "BLEU"];
const find = (id) => document.getElementById(id);
const carried = find("lessons").textContent;
const lessons = carried ? JSON.parse(carried) : null; // null where a server computes them

let [colors, lesson, shown] = [themeColors(), null, null];
const app = { facts: JSON.parse(find("facts").textContent), lesson: () => lesson, colors: () => colors };
const steps = MAKERS.map(() => null); // made when they are first shown

function placeInAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const within = (name, most) => Math.min(Math.max(Math.trunc(Number(given.get(name))) || 1, 1), most);
  return { step: within("step", MAKERS.length), sentence: within("sentence", lessons?.length ?? 1) };
}

function addressOf(place) {
  return `#${new URLSearchParams({ ...placeInAddress(), ...place })}`;
}

function showStep({ hasFocus }) {
  const { step } = placeInAddress();
  const isAnother = shown !== null && shown !== step - 1;
  if (isAnother) steps[shown]?.leave?.();
  shown = step - 1;
  steps[shown] ??= MAKERS[shown](app);
  find("step").replaceChildren(steps[shown].element);
  steps[shown].render();
  [...find("steps").querySelectorAll("a")].forEach((link, index) => {
    link.href = addressOf({ step: index + 1 });
    if (index === shown) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  });
  for (const [id, other] of [["before", step - 1], ["after", step + 1]]) {
    const exists = other >= 1 && other <= MAKERS.length;
    find(id).hidden = !exists;
    if (exists) {
      find(id).href = addressOf({ step: other });
      find(id).textContent = id === "before" ? `← ${other}. ${STEP_NAMES[other - 1]}` : `${other}. ${STEP_NAMES[other - 1]} →`;
    }
  }
  document.title = `${step}. ${STEP_NAMES[shown]}: learn attention`;
  if (isAnother && hasFocus) {
    scrollTo(0, 0);
    find(`question-${step}`).focus();
  }
}

function useLesson(json) {
  const report = readReport(json.report);
  lesson = { report, numbers: carriedNumbers(report.json), search: json.search, reference: json.reference };
  find("source").textContent = report.json.source.text;
  find("target").textContent = report.json.target.text;
  for (const side of ["source", "target"]) if (report.json[side].language) find(side).lang = report.json[side].language;
  find("pair").hidden = false;
  if (shown !== null) steps[shown].render();
}

function fillSteps() {
  find("steps").append(...STEP_NAMES.map((text, index) => made("li", {}, made("a", { text: `${index + 1} ${text}` }))));
}

function chooseAmongCarried() {
  const select = find("sentence");
  select.append(...lessons.map(({ report }, index) => made("option", { value: index + 1, text: report.source.text })));
  select.addEventListener("change", () => (location.hash = addressOf({ sentence: select.value })));
  find("choose").hidden = lessons.length < 2;
  const follow = () => {
    const { sentence } = placeInAddress();
    select.value = String(sentence);
    if (lessons[sentence - 1] !== follow.last) useLesson((follow.last = lessons[sentence - 1]));
  };
  addEventListener("hashchange", follow);
  follow();
}

async function askTheServer() {
  const { askedLesson, askedModels } = await import("./learn_served.js");
  const [form, box, status, model] = [find("ask"), find("text"), find("status"), find("model")];
  form.hidden = false;
  const references = new Map(app.facts.sentences.map(({ text, reference }) => [text, reference]));
  let latest = 0;
  const ask = async () => {
    const own = ++latest;
    status.textContent = "Computing every step of this sentence …";
    try {
      const json = await askedLesson(box.value, model.value);
      if (own !== latest) return;
      useLesson({ ...json, reference: json.report.target.language === "de" ? (references.get(box.value) ?? null) : null });
      status.textContent = "";
    } catch (fault) {
      if (own === latest) status.textContent = fault.message;
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  model.addEventListener("change", ask);
  try {
    const models = await askedModels();
    model.append(...models.map(({ name }) => made("option", { value: name, text: name })));
    model.closest("label").hidden = models.length < 2;
    if ([null, "en"].includes(models[0].source)) {
      find("offered").append(...app.facts.sentences.map(({ text }) => made("option", { value: text })));
      box.value ||= app.facts.sentences[0].text;
    }
    if (box.value) await ask();
    else status.textContent = `Type a sentence (language: ${models[0].source}).`;
  } catch (fault) {
    status.textContent = fault.message;
  }
}

fillSteps();
showStep({ hasFocus: false });
addEventListener("hashchange", () => showStep({ hasFocus: true }));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colors = themeColors();
  steps.forEach((step) => step?.render());
});
if (lessons) chooseAmongCarried();
else askTheServer();
