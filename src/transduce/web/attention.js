// The page of one report: a state, four views of it, and the panels beside them.

import { createControls } from "./controls.js";
import { createHeadView } from "./head_view.js";
import { createMatrixView } from "./matrix_view.js";
import { createModelView, createPreview } from "./model_view.js";
import { createNeuronView } from "./neuron_view.js";
import { carriedNumbers } from "./numbers.js";
import { themeColors } from "./paint.js";
import { INVISIBLE, faintestLine } from "./picture.js";
import { createAlignment, createDecoding, createReadout } from "./panels.js";
import { readReport } from "./report.js";
import { createStore } from "./state.js";

// Shows a report in an unused copy of the page's <main>. `numbers(block, layer, head)` gives q, k and v where the report
// has none. After `signal` the page no longer follows the address.
export function showAttention(json, { numbers = null, signal } = {}) {
  const report = readReport(json);
  const store = createStore(report, location, history);
  let [hover, preview, colors] = [null, null, themeColors()];
  const app = {
    report,
    store,
    numbers: carriedNumbers(report.json) ?? numbers,
    colors: () => colors,
    hover: () => hover,
    announce: (text) => {
      document.getElementById("announcement").textContent = text;
    },
    setHover(next) {
      if (!hover && !next) return;
      hover = next;
      views[store.get().view].renderHover?.();
      renderReadout(store.get());
    },
    setPreview(next) {
      preview = next;
      previewPanel.render(store.get(), preview);
    },
  };
  const views = {
    model: createModelView(app),
    head: createHeadView(app),
    neuron: createNeuronView(app),
    matrix: createMatrixView(app),
  };
  const box = document.getElementById("view");
  const readoutBox = document.getElementById("readout");
  const previewPanel = createPreview(app);
  const readout = createReadout(app, readoutBox);
  const renderReadout = (state) => {
    readoutBox.parentElement.hidden = state.view === "neuron"; // this view has its own numbers
    if (state.view === "model") showPreview(state);
    else readout(state);
  };
  const showPreview = (state) => {
    previewPanel.render(state, preview);
    if (readoutBox.firstChild !== previewPanel.element) readoutBox.replaceChildren(previewPanel.element);
  };
  const panels = [
    createControls(app, () => views[store.get().view]),
    renderReadout,
    createDecoding(app, document.getElementById("decoding")),
    createAlignment(app, document.getElementById("alignment")),
  ];
  function render(state) {
    const view = views[state.view];
    if (box.firstChild !== view.element) {
      hover = preview = null;
      box.replaceChildren(view.element);
      box.setAttribute("aria-labelledby", `tab-${state.view}`);
    }
    about.textContent = aboutView(state, report.stacks[state.stack]);
    view.render(state);
    panels.forEach((panel) => panel(state));
  }
  const about = document.getElementById("about");
  describePair(report);
  store.subscribe(render);
  addEventListener("hashchange", () => store.reread(), { signal });
  const followScheme = () => {
    colors = themeColors();
    render(store.get());
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", followScheme, { signal });
  render(store.get());
  return app;
}

function describePair({ json, names }) {
  for (const side of ["source", "target"]) {
    const element = document.getElementById(side);
    element.textContent = json[side].text;
    if (json[side].language) element.lang = json[side].language;
    element.parentElement.hidden = !json[side].tokens.length;
    document.getElementById(`${side}-name`).textContent = names[side];
  }
  const { precision, models, is_forced: isForced, largest_difference: difference } = json.translated;
  const isTranslation = names.target === "translation";
  if (isForced && isTranslation) document.getElementById("target-name").textContent = "given";
  document.title = `Attention: ${json.source.text || json.target.text}`;
  const by = models > 1 ? `${models} models together in ${precision}; attention is the first one's` : precision;
  document.getElementById("precision").hidden = !json.target.tokens.length;
  document.getElementById("precision").textContent =
    `${isForced ? `The ${names.target} was given by the user; the system ${isTranslation ? "translates" : "computes"} in` : isTranslation ? "Translated in" : "Written in"} ${by}. The weights ` +
    `come from one pass in float32; the log-probabilities of the two differ by at most ${difference.toPrecision(2)}.`;
}

// Returns one sentence on what a view shows.
function aboutView(state, { heads, isPart, queries: rows, sides: [queries, keys] }) {
  const { view, combine } = state;
  const faintest = faintestLine(rows.length, state, null);
  const left = faintest > INVISIBLE ? ` Of so many lines, those below ${faintest.toFixed(2)} appear only for a token.` : "";
  const of = (side) => (side ? ` (${side})` : "");
  const colours = heads > 1 && combine === "each" ? " Each colour is a head." : "";
  return {
    head: `A line joins a query on the left${of(queries)} to a key on the right${of(keys)} that it attends to: the stronger the line, the larger the weight.${colours}${left}`,
    model: "Each square is one head: its rows are queries, its columns keys, and a stronger colour means more weight. The number is the mean entropy of the rows in bits, 0 if every query attends to one key only.",
    neuron: "How one weight is computed: the query and the key give a score, the softmax over all keys turns scores into weights, and the output is the sum of the values times their weights.",
    matrix: `A row is a query${of(queries)}, a column is a key${of(keys)}, and the cell is the weight between them; a row sums to 1${isPart ? " with what goes to the other text" : ""}.`,
  }[view];
}
