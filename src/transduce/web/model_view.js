// bertviz's model view: every layer and head as a thumbnail.

import { groupedWeights, groupsOf, scaleEnds, shadesOf } from "./picture.js";
import { made, rampKey, rampLegend, thumbnail } from "./paint.js";
import { weightText } from "./report.js";

export function createModelView(app) {
  const grid = made("div", {
    className: "grid",
    role: "group",
    "aria-label": "Every layer and head; arrow keys move",
  });
  const legend = rampLegend();
  const element = made("div", {}, made("div", { className: "zoom" }, legend.element), grid);
  let drawn = "";
  let buttons = [];

  function build(state) {
    const { stack, queries, keys } = shownTokens(app.report, state);
    const colors = app.colors();
    buttons = [];
    legend.show(scaleEnds(state.scale));
    grid.replaceChildren(made("span", { className: "label", text: "head" }));
    grid.style.gridTemplateColumns = `max-content repeat(${stack.heads}, minmax(44px, 16rem))`;
    for (let head = 0; head < stack.heads; head++) grid.append(made("span", { className: "label", text: head + 1 }));
    for (let layer = 0; layer < stack.layers; layer++) {
      grid.append(made("span", { className: "label", text: `layer ${layer + 1}` }));
      for (let head = 0; head < stack.heads; head++) {
        const canvas = made("canvas", { "aria-hidden": "true" });
        const weights = groupedWeights(stack, layer, head, queries, keys);
        thumbnail(canvas, shadesOf(weights, keys.length, state.scale), queries.length, keys.length, colors);
        grid.append(headButton(layer, head, canvas, state));
      }
    }
  }

  function headButton(layer, head, canvas, state) {
    const bits = app.report.stacks[state.stack].entropy(layer, head).toFixed(1);
    const button = made("button", {
      type: "button",
      "aria-label": `layer ${layer + 1}, head ${head + 1}, entropy ${bits} bits`,
      "data-layer": layer,
      "data-head": head,
    });
    button.append(canvas, made("span", { text: bits, "aria-hidden": "true" }));
    button.addEventListener("click", () => choose(layer, head));
    button.addEventListener("dblclick", () => open(layer, head));
    button.addEventListener("pointerenter", () => app.setPreview({ layer, head }));
    button.addEventListener("pointerleave", () => app.setPreview(null));
    button.addEventListener("focus", () => app.setPreview({ layer, head }));
    button.addEventListener("blur", () => app.setPreview(null));
    buttons.push(button);
    return button;
  }

  function choose(layer, head) {
    app.store.set({ layer, head, heads: [head] });
    app.announce(`layer ${layer + 1}, head ${head + 1} chosen`);
  }

  // The button that had the focus is gone in the head view, so its first token gets the focus.
  function open(layer, head) {
    app.store.set({ view: "head", layer, head, heads: [head] });
    document.querySelector(".lines [role=option]")?.focus();
  }

  grid.addEventListener("keydown", (event) => {
    const button = event.target.closest("button");
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!button) return;
    const { layers, heads } = app.report.stacks[app.store.get().stack];
    if (move) {
      const layer = (Number(button.dataset.layer) + move[0] + layers) % layers;
      const head = (Number(button.dataset.head) + move[1] + heads) % heads;
      buttons.forEach((other) => {
        other.tabIndex = -1;
      });
      buttons[layer * heads + head].tabIndex = 0;
      buttons[layer * heads + head].focus();
      event.preventDefault();
    } else if (event.key === "Enter" && button.getAttribute("aria-pressed") === "true") {
      open(Number(button.dataset.layer), Number(button.dataset.head));
      event.preventDefault();
    }
  });

  function render(state) {
    const key = [state.stack, state.words, state.specials, state.scale, state.step, app.colors().isDark].join();
    if (key !== drawn) build(state);
    drawn = key;
    const chosen = buttons.findIndex(
      (button) => Number(button.dataset.layer) === state.layer && Number(button.dataset.head) === state.head,
    );
    buttons.forEach((button, index) => {
      button.setAttribute("aria-pressed", String(index === chosen && state.heads.includes(state.head)));
      button.tabIndex = index === Math.max(chosen, 0) ? 0 : -1;
    });
  }

  return { element, render, scene: (state) => modelScene(app, state) };
}

function shownTokens(report, state) {
  const stack = report.stacks[state.stack];
  return { stack, queries: groupsOf(stack.queries, state, state.step), keys: groupsOf(stack.keys, state, Infinity) };
}

function modelScene(app, state) {
  const { stack, queries, keys } = shownTokens(app.report, state);
  const colors = app.colors();
  const size = 88;
  const shapes = [
    { kind: "text", x: 8, y: 14, text: `${stack.title}: every layer and head`, color: colors.ink, size: 14 },
    ...rampKey(app, scaleEnds(state.scale), { x: 8, y: 36 }),
  ];
  for (let head = 0; head < stack.heads; head++)
    shapes.push({ kind: "text", x: 70 + head * (size + 8), y: 60, text: `head ${head + 1}`, color: colors.quiet });
  for (let layer = 0; layer < stack.layers; layer++) {
    const y = 72 + layer * (size + 8);
    shapes.push({ kind: "text", x: 8, y: y + size / 2, text: `layer ${layer + 1}`, color: colors.quiet });
    for (let head = 0; head < stack.heads; head++) {
      const canvas = document.createElement("canvas");
      const weights = groupedWeights(stack, layer, head, queries, keys);
      thumbnail(canvas, shadesOf(weights, keys.length, state.scale), queries.length, keys.length, colors);
      const x = 70 + head * (size + 8);
      shapes.push({ kind: "rectangle", x: x - 1, y: y - 1, width: size + 2, height: size + 2, color: colors.line });
      shapes.push({ kind: "image", x, y, size, canvas });
    }
  }
  return {
    width: Math.max(420, 70 + stack.heads * (size + 8)),
    height: 80 + stack.layers * (size + 8),
    background: colors.paper,
    shapes,
  };
}

// The head that is pointed at or chosen, enlarged beside the thumbnails.
export function createPreview(app) {
  const canvas = made("canvas", { className: "preview", "aria-hidden": "true" });
  const text = made("p", { className: "quiet" });
  const element = made("div", {}, canvas, text);
  return {
    element,
    render(state, preview) {
      const { stack, queries, keys } = shownTokens(app.report, state);
      const place = preview ?? { layer: state.layer, head: state.head };
      const weights = groupedWeights(stack, place.layer, place.head, queries, keys);
      thumbnail(canvas, shadesOf(weights, keys.length, state.scale), queries.length, keys.length, app.colors());
      text.textContent = previewText(stack, place, { queries, keys }, weights);
    },
  };
}

function previewText(stack, { layer, head }, { queries, keys }, weights) {
  const strongest = weights.reduce((best, value, index) => (value > weights[best] ? index : best), 0);
  const bits = stack.entropy(layer, head).toFixed(2);
  const pair = weights.length
    ? `; strongest: ${queries[Math.floor(strongest / keys.length)].text} → ${keys[strongest % keys.length].text}, ${weightText(weights[strongest], stack.digits)}`
    : "";
  return `layer ${layer + 1}, head ${head + 1}: ${bits} bits of entropy per row${pair}`;
}
