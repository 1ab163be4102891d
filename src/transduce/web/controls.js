// The controls above the views, and the buttons that save a picture.

import { VIEWS, defaultState, range, viewsOf } from "./state.js";
import { download, exportPng, headColor, made, sceneToSvg } from "./paint.js";

const VIEW_NAMES = { model: "Model view", head: "Head view", neuron: "Neuron view", matrix: "Matrix" };
// The controls that change something in each view.
const USED = {
  model: ["scale", "words", "specials"],
  head: ["layer", "combine", "threshold", "words", "specials", "heads"],
  neuron: ["layer"],
  matrix: ["layer", "combine", "scale", "threshold", "words", "specials", "heads"],
};
const SOMETIMES_USED = [...new Set(Object.values(USED).flat())];

export function createControls(app, viewOf) {
  const find = (id) => document.getElementById(id);
  const { report, store } = app;
  createTabs(app, find("views"));
  find("stack").append(...Object.values(report.stacks).map(stackOption));
  const choice = { stack: String, combine: String, scale: String, layer: Number };
  for (const [name, read] of Object.entries(choice)) {
    find(name).addEventListener("change", (event) =>
      store.set({ [name]: read(event.target.value), ...(name === "stack" ? changedStack(event.target.value) : {}) }),
    );
  }
  // The numbers of pinned tokens and cells mean other tokens in another block; heads may differ too.
  function changedStack(name) {
    const isAlike = report.stacks[name].heads === report.stacks[store.get().stack].heads;
    return { pins: [], at: [0, 0], ...(isAlike ? {} : { heads: range(report.stacks[name].heads), head: 0, read: -1 }) };
  }
  find("threshold").addEventListener("input", (event) => store.set({ threshold: Number(event.target.value) }));
  for (const name of ["words", "specials"])
    find(name).addEventListener("change", (event) => store.set({ [name]: event.target.checked }));
  find("controls").addEventListener("submit", (event) => event.preventDefault());
  find("reset").addEventListener("click", () => store.set({ ...defaultState(report), view: store.get().view }));
  const nameOf = (state) => `attention-${state.view}-${state.stack}-layer-${state.layer + 1}`;
  find("export-svg").addEventListener("click", () =>
    download(`${nameOf(store.get())}.svg`, sceneToSvg(viewOf().scene(store.get())), "image/svg+xml"),
  );
  find("export-png").addEventListener("click", () =>
    exportPng(`${nameOf(store.get())}.png`, viewOf().scene(store.get())),
  );
  const renderHeads = createHeads(app, find("heads"));
  function showUsed({ view, stack }) {
    const { layers, heads } = report.stacks[stack];
    const hasChoice = { layer: layers > 1, combine: heads > 1, heads: heads > 1 };
    for (const name of SOMETIMES_USED) {
      const element = name === "heads" ? find(name) : find(name).closest("label");
      element.hidden = !USED[view].includes(name) || hasChoice[name] === false;
    }
    find("stack").closest("label").hidden = Object.keys(report.stacks).length === 1;
  }
  return function render(state) {
    showUsed(state);
    for (const view of VIEWS) {
      const tab = find(`tab-${view}`);
      tab.hidden = !viewsOf(report, state.stack).includes(view);
      tab.setAttribute("aria-selected", String(view === state.view));
      tab.tabIndex = view === state.view ? 0 : -1;
    }
    find("stack").value = state.stack;
    const isMatrix = state.view === "matrix"; // which shows one colour, so that "each" means the mean
    find("combine").options[0].hidden = isMatrix;
    find("combine").value = isMatrix && state.combine === "each" ? "mean" : state.combine;
    find("scale").value = state.scale;
    const layers = report.stacks[state.stack].layers;
    if (find("layer").length !== layers)
      find("layer").replaceChildren(...range(layers).map((layer) => made("option", { value: layer, text: layer + 1 })));
    find("layer").value = String(state.layer);
    find("threshold").value = String(state.threshold);
    find("threshold-value").textContent = (state.threshold / 100).toFixed(2);
    find("words").checked = state.words;
    find("specials").checked = state.specials;
    renderHeads(state);
  };
}

function stackOption({ name, title }) {
  return made("option", { value: name, text: name === "all" ? title : `${name}: ${title}` });
}

function createTabs({ report, store }, bar) {
  for (const view of VIEWS) {
    const tab = made("button", {
      type: "button",
      role: "tab",
      id: `tab-${view}`,
      "aria-controls": "view",
      text: VIEW_NAMES[view],
    });
    tab.addEventListener("click", () => store.set({ view }));
    bar.append(tab);
  }
  bar.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    const views = viewsOf(report, store.get().stack);
    const view = views[(views.indexOf(store.get().view) + move + views.length) % views.length];
    store.set({ view });
    document.getElementById(`tab-${view}`).focus();
    event.preventDefault();
  });
}

function createHeads(app, box) {
  const { report, store } = app;
  let chips = [];
  const toggle = (head) => {
    const before = store.get().heads;
    const after = before.includes(head) ? before.filter((other) => other !== head) : [...before, head];
    store.set({ heads: after, head: after.includes(head) ? head : (after[0] ?? head) });
  };
  const solo = (head) => store.set({ heads: [head], head });
  const chipOf = (head) => {
    const chip = made(
      "button",
      { type: "button" },
      made("i", { "aria-hidden": "true" }),
      made("span", { text: head + 1 }),
    );
    chip.addEventListener("click", () => toggle(head));
    chip.addEventListener("dblclick", () => solo(head));
    chip.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !event.shiftKey) return;
      solo(head);
      event.preventDefault();
    });
    return chip;
  };
  const every = made("button", { type: "button", text: "all heads" });
  every.addEventListener("click", () => store.set({ heads: range(report.stacks[store.get().stack].heads) }));
  return (state) => {
    const stack = report.stacks[state.stack];
    if (chips.length !== stack.heads) {
      chips = range(stack.heads).map(chipOf);
      box.replaceChildren(...chips, every);
    }
    chips.forEach((chip, head) => {
      const bits = stack.entropy(state.layer, head).toFixed(2);
      chip.setAttribute("aria-pressed", String(state.heads.includes(head)));
      chip.setAttribute("aria-label", `head ${head + 1}, entropy ${bits} bits`);
      chip.title = `head ${head + 1}: ${bits} bits of entropy per row`;
      chip.style.setProperty("--own", headColor(head, stack.heads, app.colors().isDark));
    });
  };
}
