// bertviz's head view: two columns of tokens, and a line for each weight.

import { INVISIBLE, faintestLine, focusOf, headsText, layersOf, pictureOf, strongestCell, summedFocus } from "./picture.js";
import { headColor, headKey, made, pixelRatio } from "./paint.js";

const ROW = 26; // pixels, as in the style sheet
const SHADES = 16;

export function createHeadView(app) {
  const canvas = made("canvas", { "aria-hidden": "true" });
  const lists = {
    query: tokenList("queries", "Queries: the positions that attend"),
    key: tokenList("keys", "Keys: the tokens that they attend to"),
  };
  const area = made("div", { className: "lines" }, canvas, lists.query, lists.key);
  const headings = made("div", { className: "headings", "aria-hidden": "true" }, made("span"), made("span"));
  const element = made("div", {}, headings, area);
  let backdrop = { key: "", canvas: null };

  function tokenList(className, label) {
    return made("ul", { className, role: "listbox", "aria-multiselectable": "true", "aria-label": label });
  }

  for (const side of ["query", "key"]) {
    const list = lists[side];
    list.addEventListener("pointerover", (event) => hoverOver(side, event.target.closest("li")));
    list.addEventListener("pointerleave", () => app.setHover(null));
    list.addEventListener("focusin", (event) => hoverOver(side, event.target.closest("li")));
    list.addEventListener("focusout", () => app.setHover(null));
    list.addEventListener("click", (event) => pin(side, event.target.closest("li"), event.shiftKey));
    list.addEventListener("keydown", (event) => pressed(side, event));
  }

  const membersOf = (item) => item.dataset.members.split(".").map(Number);

  function hoverOver(side, item) {
    if (item) app.setHover({ side, tokens: membersOf(item) });
  }

  function pin(side, item, adds) {
    if (!item) return;
    const state = app.store.get();
    const members = membersOf(item);
    const before = state.side === side ? state.pins : [];
    const isPinned = members.every((token) => before.includes(token));
    const others = before.filter((token) => !members.includes(token));
    const pins = adds ? (isPinned ? others : [...before, ...members]) : isPinned && !others.length ? [] : members;
    const at = strongestCell(app.report, state, side, members[0]); // for the neuron view and the matrix
    app.store.set({ side, pins, ...(pins.length ? { at } : {}) });
    app.announce(pins.length ? `${item.textContent} ${isPinned && adds ? "let go" : "pinned"}` : "nothing pinned");
  }

  function pressed(side, event) {
    const item = event.target.closest("li");
    if (!item) return;
    const items = [...lists[side].children];
    const place = items.indexOf(item);
    const goal = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: items.length - 1 }[event.key];
    if (goal !== undefined) focusItem(items[Math.min(Math.max(goal, 0), items.length - 1)], items);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight")
      crossOver(event.key === "ArrowLeft" ? "query" : "key", place);
    else if (event.key === "Enter" || event.key === " ") pin(side, item, event.shiftKey);
    else if (event.key === "Escape") app.store.set({ pins: [] });
    else return;
    event.preventDefault();
  }

  function crossOver(side, place) {
    const items = [...lists[side].children];
    if (items.length) focusItem(items[Math.min(place, items.length - 1)], items);
  }

  function focusItem(item, items) {
    items.forEach((other) => {
      other.tabIndex = other === item ? 0 : -1;
    });
    item.focus();
  }

  function renderList(side, groups, state) {
    const list = lists[side];
    const key = groups.map((group) => group.text + group.isFuture + group.isStep + group.members).join("\n");
    if (list.dataset.key !== key) {
      list.dataset.key = key;
      list.replaceChildren(
        ...groups.map((group, index) =>
          made("li", {
            role: "option",
            text: group.text,
            dir: "auto",
            tabindex: index ? -1 : 0,
            title: titleOf(group),
            "data-members": group.members.join("."),
            className: [group.isFuture && "future", group.isStep && "step"].filter(Boolean).join(" "),
          }),
        ),
      );
    }
    [...list.children].forEach((item, index) => {
      const isPinned = state.side === side && groups[index].members.some((token) => state.pins.includes(token));
      item.setAttribute("aria-selected", String(isPinned));
    });
  }

  function render(state) {
    const picture = pictureOf(app.report, state);
    const [queries, keys] = picture.stack.sides;
    headings.firstChild.textContent = `${queries} (queries)`.trim();
    headings.lastChild.textContent = `${keys} (keys)`.trim();
    renderList("query", picture.queries, state);
    renderList("key", picture.keys, state);
    draw(state);
  }

  function draw(state = app.store.get()) {
    const picture = pictureOf(app.report, state);
    const width = area.clientWidth;
    const height = Math.max(picture.queries.length, picture.keys.length) * ROW;
    if (!width) return;
    const ratio = pixelRatio(width, height);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    canvas.style.height = `${height}px`;
    const geometry = geometryOf(lists, width);
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const focus = focusOf(picture, state, app.hover());
    if (focus) {
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      paintLines(context, app, state, picture, geometry, focus);
      paintShares(context, app, state, picture, geometry, focus);
    } else {
      context.drawImage(allLines(state, picture, geometry, ratio), 0, 0);
    }
  }

  // Drawing every line takes longest, so this picture is kept until something other than the pointer changes.
  function allLines(state, picture, geometry, ratio) {
    const key = JSON.stringify([
      state.stack,
      state.layer,
      state.heads,
      state.combine,
      state.threshold,
      state.words,
      state.specials,
      state.step,
      geometry,
      ratio,
      app.colors().isDark,
    ]);
    if (backdrop.key !== key) {
      const kept = document.createElement("canvas");
      kept.width = canvas.width;
      kept.height = canvas.height;
      const context = kept.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      paintLines(context, app, state, picture, geometry, null);
      backdrop = { key, canvas: kept };
    }
    return backdrop.canvas;
  }

  new ResizeObserver(() => draw()).observe(area);
  return { element, render, renderHover: draw, scene: (state) => headScene(app, state) };
}

function titleOf(group) {
  return group.logProbability === null || group.logProbability === undefined
    ? group.text
    : `${group.text}: log-probability ${group.logProbability.toFixed(3)}`;
}

function geometryOf(lists, width) {
  return { left: lists.query.clientWidth, right: width - lists.key.clientWidth, width };
}

// Calls draw(row, column, weight) for every line that is visible.
function eachLine(picture, weights, state, focus, draw) {
  const columns = picture.keys.length;
  const faintest = Math.max(faintestLine(picture.queries.length, state, focus), state.threshold / 100);
  const rows = focus && focus.side === "query" ? focus.members : picture.queries.keys();
  for (const row of rows) {
    const chosen = focus && focus.side === "key" ? focus.members : null;
    const count = chosen ? chosen.length : columns;
    for (let index = 0; index < count; index++) {
      const column = chosen ? chosen[index] : index;
      const weight = weights[row * columns + column];
      if (weight >= faintest) draw(row, column, Math.min(weight, 1));
    }
  }
}

// Lines of one shade are one path, because one stroke of a thousand lines is fast.
function paintLines(context, app, state, picture, geometry, focus) {
  const { isDark } = app.colors();
  context.lineWidth = 1.6;
  for (const { head, weights } of layersOf(picture, state)) {
    const paths = Array.from({ length: SHADES + 1 }, () => null);
    eachLine(picture, weights, state, focus, (row, column, weight) => {
      const shade = Math.ceil(weight * SHADES);
      paths[shade] ??= new Path2D();
      paths[shade].moveTo(geometry.left, (row + 0.5) * ROW);
      paths[shade].lineTo(geometry.right, (column + 0.5) * ROW);
    });
    context.strokeStyle = headColor(head, picture.stack.heads, isDark);
    paths.forEach((path, shade) => {
      if (!path) return;
      context.globalAlpha = shade / SHADES;
      context.stroke(path);
    });
  }
  context.globalAlpha = 1;
}

// Draws a stripe for each head under each token of the other side, as opaque as the weight.
function paintShares(context, app, state, picture, geometry, focus) {
  for (const shape of shareShapes(app, state, picture, geometry, focus)) {
    context.globalAlpha = shape.opacity;
    context.fillStyle = shape.color;
    context.fillRect(shape.x, shape.y, shape.width, shape.height);
  }
  context.globalAlpha = 1;
}

function shareShapes(app, state, picture, geometry, focus) {
  const layers = layersOf(picture, state);
  const isQuery = focus.side === "query";
  const [start, width] = isQuery ? [geometry.right, geometry.width - geometry.right] : [0, geometry.left];
  const shapes = [];
  layers.forEach(({ head, weights }, place) => {
    const color = headColor(head, picture.stack.heads, app.colors().isDark);
    summedFocus(picture, weights, focus).forEach((sum, row) => {
      if (sum < Math.max(INVISIBLE, state.threshold / 100)) return;
      const own = width / layers.length;
      shapes.push({
        kind: "rectangle",
        x: start + place * own,
        y: (row + 1) * ROW - 5,
        width: own - 1,
        height: 4,
        color,
        opacity: Math.min(sum, 1),
      });
    });
  });
  return shapes;
}

function headScene(app, state) {
  const picture = pictureOf(app.report, state);
  const colors = app.colors();
  const key = headKey(app, state, picture.stack, { y: 36, width: 700 });
  const top = 34 + key.height;
  const geometry = { left: 180, right: 520, width: 700 };
  const focus = focusOf(picture, state, null);
  const shapes = [
    {
      kind: "text",
      x: 8,
      y: 14,
      text: `${picture.stack.title}, layer ${state.layer + 1}${state.combine === "each" ? "" : `, ${headsText(state)}`}`,
      color: colors.ink,
      size: 14,
    },
    ...key.shapes,
  ];
  for (const { head, weights } of layersOf(picture, state)) {
    const color = headColor(head, picture.stack.heads, colors.isDark);
    eachLine(picture, weights, state, focus, (row, column, weight) =>
      shapes.push({
        kind: "line",
        x1: geometry.left,
        y1: top + (row + 0.5) * ROW,
        x2: geometry.right,
        y2: top + (column + 0.5) * ROW,
        color,
        opacity: weight,
      }),
    );
  }
  if (focus)
    shapes.push(...shareShapes(app, state, picture, geometry, focus).map((shape) => ({ ...shape, y: shape.y + top })));
  picture.queries.forEach((group, row) =>
    shapes.push({
      kind: "text",
      x: geometry.left - 6,
      y: top + (row + 0.5) * ROW,
      text: group.text,
      color: colors.ink,
      anchor: "end",
      size: 14,
    }),
  );
  picture.keys.forEach((group, row) =>
    shapes.push({
      kind: "text",
      x: geometry.right + 6,
      y: top + (row + 0.5) * ROW,
      text: group.text,
      color: colors.ink,
      size: 14,
    }),
  );
  const height = top + Math.max(picture.queries.length, picture.keys.length) * ROW + 8;
  return { width: geometry.width, height, background: colors.paper, shapes };
}
