// The six steps in a head of the model: every key as a heat strip, following the chosen word.

import { chooser } from "./learn_parts.js";
import { stepsOf } from "./numbers.js";
import { made } from "./paint.js";
import { groupsOf } from "./picture.js";
import { range } from "./state.js";
import { heatStrip, keyStrips, largestOf } from "./strips.js";

const COLUMNS = { Q: ["product"], K: ["key", "product", "score"], scale: ["score"], softmax: ["weight"], V: ["value"] };
const BLOCKS = { encoder: "the source looks at itself", decoder: "the translation looks at itself", cross: "the translation looks at the source" };

export function createRealHead(app) {
  const body = made("div");
  let [terms, chosen] = [[], { block: 0, layer: 0, head: 0, q: 0, k: 0 }];
  const set = (patch) => {
    chosen = { ...chosen, ...patch };
    render();
  };
  const choices = {
    block: chooser("attention", (block) => set({ block, q: 0, k: 0 })),
    layer: chooser("layer", (layer) => set({ layer })),
    head: chooser("head", (head) => set({ head })),
    q: chooser("the word that looks", (q) => set({ q })),
  };
  const element = made("div", { className: "real" }, made("div", { className: "choices" }, ...Object.values(choices).map((one) => one.element)), body);

  async function render() {
    const lesson = app.lesson();
    if (!lesson) return body.replaceChildren(made("p", { className: "quiet", text: "Waiting for the sentence." }));
    const { stacks } = lesson.report;
    const names = Object.keys(BLOCKS);
    const stack = stacks[names[chosen.block]];
    const { layers, heads, queries, keys } = stack;
    chosen = { ...chosen, layer: Math.min(chosen.layer, layers - 1), head: Math.min(chosen.head, heads - 1), q: Math.min(chosen.q, queries.length - 1), k: Math.min(chosen.k, keys.length - 1) };
    const [asking, asked] = [queries, keys].map((tokens) => groupsOf(tokens, {}, Infinity).map(({ text }) => text));
    choices.block.fill(names.map((name) => `${name}: ${BLOCKS[name]}`), chosen.block);
    choices.layer.fill(range(layers).map((layer) => `layer ${layer + 1}`), chosen.layer);
    choices.head.fill(range(heads).map((head) => `head ${head + 1}`), chosen.head);
    choices.q.fill(asking.map((text, index) => `${index + 1}. ${text}`), chosen.q);
    const own = chosen;
    const numbers = await lesson.numbers(stack.name, chosen.layer, chosen.head);
    if (own !== chosen || lesson !== app.lesson()) return;
    const steps = stepsOf(numbers, stack.isVisible, chosen.q, chosen.k);
    const lit = new Set(terms.flatMap((term) => COLUMNS[term]));
    const colors = app.colors();
    const width = numbers.query[0].length;
    const output = heatStrip(steps.output, largestOf([steps.output]), colors);
    body.replaceChildren(
      made("p", { className: "quiet", text: `Each strip is a vector of ${width} numbers: blue above 0, orange below. dₖ = ${width}, so √dₖ = ${Math.sqrt(width).toFixed(2)}. Press a word to look at its key. The share is that of weight × length of v: a large weight on a short value moves little. <EOS> is the token that ends a sentence.` }),
      vectorLine(`query of ${asking[chosen.q]}`, heatStrip(numbers.query[chosen.q], largestOf(numbers.query), colors), terms.includes("Q")),
      keyStrips({ numbers, steps, names: asked, place: chosen, colors, terms: [...lit], onKey: (k) => set({ k }) }),
      vectorLine("output: Σ weight × v", output, terms.includes("V")),
      made("p", { className: "how", text: sentenceOf(steps, asking[chosen.q], asked, chosen, numbers) }),
    );
  }

  function light(next) {
    terms = next;
    render();
  }
  return { element, render, light };
}

function vectorLine(name, strip, isLit) {
  return made("div", { className: `vector-line ${isLit ? "lit" : ""}` }, made("span", { text: name }), strip);
}

function sentenceOf(steps, query, keys, { k }, { scale }) {
  const product = steps.products[k].toFixed(2).replace("-", "−");
  if (!steps.visible[k]) return `“${query}” may not see “${keys[k]}”: its score is −∞ and its weight 0.`;
  const score = steps.scores[k].toFixed(2).replace("-", "−");
  const root = scale === 1 ? "" : ` / ${(1 / scale).toFixed(2)}`;
  return `“${query}” and “${keys[k]}”: q · k = ${product}; score = ${product}${root} = ${score}; weight = ${steps.weights[k].toFixed(3)}.`;
}
