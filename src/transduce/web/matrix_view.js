// The weights of the chosen heads as a matrix: queries are rows, keys are columns. Its labels stay visible when it scrolls.

import { combinedWeights, groupIndex, headsText, pictureOf, scaleEnds, shadesOf } from "./picture.js";
import { made, pixelRatio, rampKey, rampLegend, thumbnail } from "./paint.js";
import { weightText } from "./report.js";

const SMALLEST = 3;
const LARGEST = 64;
const LABEL = 11; // pixels a label needs
const LONGEST_LABEL = 130;
const sizeOf = (element) => parseFloat(getComputedStyle(element).fontSize);

export function createMatrixView(app) {
  const canvas = made("canvas", { "aria-hidden": "true" });
  const spacer = made("div", { className: "spacer" });
  const frame = made(
    "div",
    { className: "matrix", tabindex: 0, role: "application", "aria-roledescription": "matrix" },
    spacer,
    canvas,
  );
  const size = made("output", { className: "quiet" });
  const button = (text, label, action) => {
    const control = made("button", { type: "button", text, "aria-label": label });
    control.addEventListener("click", action);
    return control;
  };
  const zoomBy = (factor) =>
    app.store.set({ zoom: Math.min(Math.max(Math.round(cellSize(app.store.get()) * factor), SMALLEST), LARGEST) });
  const legend = rampLegend();
  const bar = made(
    "div",
    { className: "zoom", role: "group", "aria-label": "Zoom" },
    button("+", "Zoom in", () => zoomBy(1.4)),
    button("−", "Zoom out", () => zoomBy(1 / 1.4)),
    button("Fit", "Fit the matrix to the window", () => app.store.set({ zoom: 0 })),
    size,
    legend.element,
  );
  const element = made("div", {}, bar, frame);
  let label = { left: 80, top: 80 };
  let [measured, kept] = [null, { key: "", picture: null, image: null }];

  const scenery = (state) => {
    const picture = pictureOf(app.report, state);
    return { picture, weights: combinedWeights(picture, state.heads, state.combine) };
  };

  // The browser enlarges a picture with one pixel for each cell, which is faster than drawing 40,000 cells.
  function imageOf(state, picture, weights) {
    const key = [state.heads, state.combine, state.threshold, state.scale, app.colors().isDark].join("|");
    if (kept.key !== key || kept.picture !== picture) {
      kept = { key, picture, image: document.createElement("canvas") };
      thumbnail(kept.image, matrixShades(state, picture, weights), picture.queries.length, picture.keys.length, app.colors());
    }
    return kept.image;
  }

  const highest = () => Math.min(innerHeight * 0.78, 46 * sizeOf(document.documentElement)) - 2; // as in the style sheet

  function cellSize(state) {
    if (state.zoom) return Math.max(state.zoom, SMALLEST);
    const { queries, keys } = pictureOf(app.report, state);
    const fitting = Math.min(
      (frame.clientWidth - label.left - 12) / Math.max(keys.length, 1),
      (highest() - label.top - 12) / Math.max(queries.length, 1),
    );
    const most = Math.min(Math.max(frame.clientWidth / 24, 36), LARGEST); // a large screen shows larger cells
    return Math.min(Math.max(fitting, SMALLEST), most);
  }

  function measure(context, picture) {
    const key = `${frame.clientWidth}`;
    if (measured?.picture === picture && measured.key === key) return;
    measured = { picture, key };
    context.font = `${0.8 * sizeOf(document.body)}px system-ui, sans-serif`;
    const longest = (groups) =>
      Math.min(LONGEST_LABEL, 14 + Math.max(20, ...groups.map((group) => context.measureText(group.text).width)));
    label = { left: Math.min(longest(picture.queries), frame.clientWidth * 0.35), top: longest(picture.keys) };
  }

  function cursorOf(state, picture) {
    return {
      row: Math.max(groupIndex(picture.queries, state.at[0]), 0),
      column: Math.max(groupIndex(picture.keys, state.at[1]), 0),
    };
  }

  function draw(state = app.store.get()) {
    const { picture, weights } = scenery(state);
    if (!frame.clientWidth) return;
    const context = canvas.getContext("2d");
    measure(context, picture);
    const cell = cellSize(state);
    const wanted = [label.left + picture.keys.length * cell + 8, label.top + picture.queries.length * cell + 8];
    spacer.style.width = `${wanted[0]}px`;
    spacer.style.height = `${wanted[1]}px`;
    frame.style.height = `${Math.min(highest(), wanted[1] + 18)}px`;
    const [width, height] = [frame.clientWidth, frame.clientHeight];
    const ratio = pixelRatio(width, height);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const strongest = weightText(strongestOf(weights), picture.stack.digits);
    size.textContent = `${picture.stack.title}, ${picture.queries.length} × ${picture.keys.length}, ${headsText(state)}; strongest: ${strongest}`;
    legend.show(scaleEnds(state.scale, strongest));
    paintMatrix(context, {
      app,
      state,
      picture,
      image: imageOf(state, picture, weights),
      cell,
      label,
      width,
      height,
      scroll: [frame.scrollLeft, frame.scrollTop],
      cursor: hovered ?? cursorOf(state, picture),
    });
  }

  let hovered = null;

  function cellAt(event) {
    const { picture } = scenery(app.store.get());
    const box = frame.getBoundingClientRect();
    const cell = cellSize(app.store.get());
    const column = Math.floor((event.clientX - box.left - frame.clientLeft - label.left + frame.scrollLeft) / cell);
    const row = Math.floor((event.clientY - box.top - frame.clientTop - label.top + frame.scrollTop) / cell);
    const isInside =
      event.clientX - box.left > label.left &&
      event.clientY - box.top > label.top &&
      picture.queries[row] &&
      picture.keys[column];
    return isInside ? { row, column } : null;
  }

  function select({ row, column }) {
    const { picture } = scenery(app.store.get());
    app.store.set({ at: [picture.queries[row].members[0], picture.keys[column].members[0]] });
  }

  function pinRow(row, adds) {
    const { picture } = scenery(app.store.get());
    const state = app.store.get();
    const before = adds && state.side === "query" ? state.pins : [];
    app.store.set({ side: "query", pins: [...before, ...picture.queries[row].members] });
  }

  frame.addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    if (cell?.row === hovered?.row && cell?.column === hovered?.column) return;
    hovered = cell;
    const { picture } = scenery(app.store.get());
    app.setHover(
      cell
        ? { side: "query", tokens: picture.queries[cell.row].members, other: picture.keys[cell.column].members }
        : null,
    );
  });
  frame.addEventListener("pointerleave", () => {
    hovered = null;
    app.setHover(null);
  });
  frame.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    select(cell);
    pinRow(cell.row, event.shiftKey);
  });
  frame.addEventListener("scroll", () => draw());
  frame.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoomBy(event.deltaY < 0 ? 1.2 : 1 / 1.2);
    },
    { passive: false },
  );
  frame.addEventListener("keydown", (event) => {
    const state = app.store.get();
    const { picture, weights } = scenery(state);
    const { row, column } = cursorOf(state, picture);
    const goal = {
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      Home: [row, 0],
      End: [row, picture.keys.length - 1],
    }[event.key];
    if (goal && picture.queries[goal[0]] && picture.keys[goal[1]]) {
      select({ row: goal[0], column: goal[1] });
      bringIntoSight(goal[0], goal[1]);
      app.announce(cellText(picture, weights, goal[0], goal[1]));
    } else if (event.key === "Enter" || event.key === " ") pinRow(row, event.shiftKey);
    else if (event.key === "Escape") app.store.set({ pins: [] });
    else if (event.key === "+" || event.key === "=") zoomBy(1.4);
    else if (event.key === "-" || event.key === "−") zoomBy(1 / 1.4);
    else if (event.key === "0") app.store.set({ zoom: 0 });
    else if (!goal) return;
    event.preventDefault();
  });

  function bringIntoSight(row, column) {
    const cell = cellSize(app.store.get());
    const [x, y] = [column * cell, row * cell];
    const [width, height] = [frame.clientWidth - label.left - cell, frame.clientHeight - label.top - cell];
    frame.scrollLeft = Math.min(Math.max(frame.scrollLeft, x - width), x);
    frame.scrollTop = Math.min(Math.max(frame.scrollTop, y - height), y);
  }

  function render(state) {
    const { picture, weights } = scenery(state);
    const { row, column } = cursorOf(state, picture);
    const at = picture.queries.length && picture.keys.length ? cellText(picture, weights, row, column) : "empty";
    frame.setAttribute("aria-label", `Attention matrix; arrow keys move, Enter pins a row, plus and minus zoom. ${at}`);
    draw(state);
  }

  new ResizeObserver(() => draw()).observe(frame);
  return { element, render, renderHover: draw, scene: (state) => matrixScene(app, state, scenery(state)) };
}

function strongestOf(weights) {
  return weights.reduce((strongest, weight) => Math.max(strongest, weight), 1e-6);
}

function matrixShades(state, picture, weights) {
  const shown = weights.map((weight) => (weight >= state.threshold / 100 ? weight : 0));
  return shadesOf(shown, picture.keys.length, state.scale, strongestOf(weights));
}

function cellText(picture, weights, row, column) {
  const weight = weights[row * picture.keys.length + column];
  return `${picture.queries[row].text} → ${picture.keys[column].text}: ${weightText(weight, picture.stack.digits)}`;
}

function paintMatrix(context, { app, state, picture, image, cell, label, width, height, scroll, cursor }) {
  const colors = app.colors();
  const columns = picture.keys.length;
  const x = (column) => label.left + column * cell - scroll[0];
  const y = (row) => label.top + row * cell - scroll[1];
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(label.left, label.top, width, height);
  context.clip();
  context.imageSmoothingEnabled = false;
  context.drawImage(image, x(0), y(0), columns * cell, picture.queries.length * cell);
  if (cell > 8) {
    context.fillStyle = colors.card;
    for (let row = 1; row <= picture.queries.length; row++) context.fillRect(x(0), y(row) - 1, columns * cell, 1);
    for (let column = 1; column <= columns; column++) {
      context.fillRect(x(column) - 1, y(0), 1, picture.queries.length * cell);
    }
  }
  if (columns && picture.queries.length) {
    context.strokeStyle = colors.ink;
    context.lineWidth = 2;
    context.strokeRect(x(cursor.column), y(cursor.row), cell - 1, cell - 1);
  }
  context.restore();
  paintLabels(context, { state, picture, cell, label, width, height, cursor, colors, x, y });
}

function paintLabels(context, { state, picture, cell, label, width, height, cursor, colors, x, y }) {
  const every = Math.max(1, Math.ceil(LABEL / cell));
  const isMarked = (group, index, place, side) =>
    index === place || (state.side === side && group.members.some((token) => state.pins.includes(token)));
  context.textBaseline = "middle";
  picture.queries.forEach((group, row) => {
    const isStrong = isMarked(group, row, cursor.row, "query");
    const middle = y(row) + cell / 2;
    if ((row % every && !isStrong) || middle < label.top || middle > height) return;
    paintLabel(context, group.text, {
      x: label.left - 6,
      y: middle,
      turn: 0,
      isStrong,
      colors,
      longest: label.left - 8,
    });
  });
  picture.keys.forEach((group, column) => {
    const isStrong = isMarked(group, column, cursor.column, "key");
    const middle = x(column) + cell / 2;
    if ((column % every && !isStrong) || middle < label.left || middle > width) return;
    paintLabel(context, group.text, {
      x: middle,
      y: label.top - 6,
      turn: Math.PI / 2,
      isStrong,
      colors,
      longest: label.top - 8,
    });
  });
}

function paintLabel(context, text, { x, y, turn, isStrong, colors, longest }) {
  context.save();
  context.translate(x, y);
  context.rotate(turn);
  context.textAlign = "right";
  context.font = `${isStrong ? "650 " : ""}${0.8 * sizeOf(document.body)}px system-ui, sans-serif`;
  if (isStrong) {
    const width = Math.min(context.measureText(text).width, longest);
    context.fillStyle = colors.card;
    context.fillRect(-width - 2, -7, width + 4, 14);
  }
  context.fillStyle = isStrong ? colors.ink : colors.quiet;
  context.fillText(elided(context, text, longest), 0, 0, longest);
  context.restore();
}

function elided(context, text, longest) {
  const width = context.measureText(text).width;
  const characters = [...text];
  return width <= longest
    ? text
    : `${characters.slice(0, Math.floor((characters.length * longest) / width) - 1).join("")}…`;
}

function matrixScene(app, state, { picture, weights }) {
  const colors = app.colors();
  const cell = 22;
  const [left, top] = [140, 170];
  const strongest = weightText(strongestOf(weights), picture.stack.digits);
  const shapes = [
    {
      kind: "text",
      x: 8,
      y: 14,
      text: `${picture.stack.title}, layer ${state.layer + 1}, ${headsText(state)}`,
      color: colors.ink,
      size: 14,
    },
    ...rampKey(app, scaleEnds(state.scale, strongest), { x: 8, y: 36 }),
  ];
  picture.queries.forEach((group, row) =>
    shapes.push({
      kind: "text",
      x: left - 6,
      y: top + (row + 0.5) * cell,
      text: group.text,
      color: colors.ink,
      anchor: "end",
    }),
  );
  picture.keys.forEach((group, column) =>
    shapes.push({
      kind: "text",
      x: left + (column + 0.5) * cell,
      y: top - 6,
      text: group.text,
      color: colors.ink,
      anchor: "end",
      turn: 90,
    }),
  );
  matrixShades(state, picture, weights).forEach((opacity, index) => {
    if (opacity < 0.004) return;
    const [row, column] = [Math.floor(index / picture.keys.length), index % picture.keys.length];
    shapes.push({
      kind: "rectangle",
      x: left + column * cell,
      y: top + row * cell,
      width: cell - 1,
      height: cell - 1,
      color: `rgb(${colors.heatRgb.join(",")})`,
      opacity,
    });
  });
  return {
    width: Math.max(420, left + picture.keys.length * cell + 8),
    height: top + picture.queries.length * cell + 8,
    background: colors.paper,
    shapes,
  };
}
