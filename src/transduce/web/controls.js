// What the user turns: view, kind of attention, layer, heads, threshold, words; and the pictures to take along.

import { entropyOf } from "./report.js";
import { STACKS, VIEWS, defaultState, range } from "./state.js";
import { download, exportPng, headColor, made, sceneToSvg } from "./paint.js";

const VIEW_NAMES = { model: "Model view", head: "Head view", neuron: "Neuron view", matrix: "Matrix" };
const STACK_NAMES = {
  cross: "cross: translation → source",
  encoder: "encoder: source → source",
  decoder: "decoder: translation → itself",
  all: "all in one",
};

export function createControls(app, viewOf) {
  const find = (id) => document.getElementById(id);
  const { report, store } = app;
  createTabs(store, find("views"));
  find("stack").append(...STACKS.map((name) => made("option", { value: name, text: STACK_NAMES[name] })));
  const choice = { stack: String, combine: String, layer: Number };
  for (const [name, read] of Object.entries(choice)) {
    // A pin or a cell of another kind of attention would name other tokens there.
    find(name).addEventListener("change", (event) =>
      store.set({ [name]: read(event.target.value), ...(name === "stack" ? { pins: [], at: [0, 0] } : {}) }),
    );
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
  return function render(state) {
    for (const view of VIEWS) {
      const tab = find(`tab-${view}`);
      tab.setAttribute("aria-selected", String(view === state.view));
      tab.tabIndex = view === state.view ? 0 : -1;
    }
    find("stack").value = state.stack;
    find("combine").value = state.combine;
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

function createTabs(store, bar) {
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
    const view = VIEWS[(VIEWS.indexOf(store.get().view) + move + VIEWS.length) % VIEWS.length];
    store.set({ view });
    document.getElementById(`tab-${view}`).focus();
    event.preventDefault();
  });
}

function createHeads(app, box) {
  const { report, store } = app;
  const heads = report.stacks.cross.heads;
  const toggle = (head) => {
    const before = store.get().heads;
    const after = before.includes(head) ? before.filter((other) => other !== head) : [...before, head];
    store.set({ heads: after, head: after.includes(head) ? head : (after[0] ?? head) });
  };
  const solo = (head) => store.set({ heads: [head], head });
  const chips = range(heads).map((head) => {
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
  });
  const every = made("button", { type: "button", text: "all heads" });
  every.addEventListener("click", () => store.set({ heads: range(heads) }));
  box.append(...chips, every);
  return (state) =>
    chips.forEach((chip, head) => {
      const bits = entropyOf(report, state.stack, state.layer, head).toFixed(2);
      chip.setAttribute("aria-pressed", String(state.heads.includes(head)));
      chip.setAttribute("aria-label", `head ${head + 1}, entropy ${bits} bits`);
      chip.title = `head ${head + 1}: ${bits} bits of entropy a row`;
      chip.style.setProperty("--own", headColor(head, heads, app.colors().isDark));
    });
}
