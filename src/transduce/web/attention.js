// The page: one state, four views of it, and the panels beside them.

import { createControls } from "./controls.js";
import { createHeadView } from "./head_view.js";
import { createMatrixView } from "./matrix_view.js";
import { createModelView, createPreview } from "./model_view.js";
import { createNeuronView } from "./neuron_view.js";
import { carriedNumbers } from "./numbers.js";
import { themeColors } from "./paint.js";
import { createAlignment, createDecoding, createReadout } from "./panels.js";
import { readReport } from "./report.js";
import { createStore } from "./state.js";

// Shows a report. `numbers(block, layer, head)` is asked for q, k and v where the report does not carry them.
export function showAttention(json, { numbers = null } = {}) {
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
    readoutBox.parentElement.hidden = state.view === "neuron"; // which reads itself out
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
    view.render(state);
    panels.forEach((panel) => panel(state));
  }
  describePair(report);
  store.subscribe(render);
  addEventListener("hashchange", () => store.reread());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    colors = themeColors();
    render(store.get());
  });
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
  if (isForced && names.target === "translation") document.getElementById("target-name").textContent = "forced";
  document.title = `Attention: ${json.source.text || json.target.text}`;
  const by = models > 1 ? `${models} models together in ${precision}; attention is the first one's` : precision;
  document.getElementById("precision").hidden = !json.target.tokens.length;
  document.getElementById("precision").textContent =
    `${isForced ? `The ${names.target} was given by the user; the system computes in` : "Translated in"} ${by}. Shown is one pass in float32: ` +
    `no token's log-probability differs by more than ${difference.toPrecision(2)}.`;
}
