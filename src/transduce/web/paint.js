// Colours, elements, and pictures as lists of shapes, which become SVG or are painted on a canvas.

export function made(name, { text, className, ...attributes } = {}, ...children) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

export function themeColors() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const parse = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
  return {
    isDark,
    paper: of("--paper"),
    card: of("--card"),
    ink: of("--ink"),
    quiet: of("--quiet"),
    line: of("--line"),
    mark: of("--mark"),
    cardRgb: parse(of("--card")),
    heatRgb: of("--heat").split(",").map(Number),
  };
}

export function headColor(head, heads, isDark) {
  if (head === null) return isDark ? "hsl(210, 90%, 72%)" : "hsl(210, 88%, 36%)";
  // Heads of neighbouring numbers differ much in hue, and every second one is darker for readers who do not see hues.
  const hue = (head * 360 * 0.618) % 360;
  const light = (isDark ? 66 : 42) + (head % 2 ? 8 : -4);
  return `hsl(${hue.toFixed(0)}, 72%, ${light}%)`;
}

// Returns the key of a head view's picture: the colour of each head, and what the strength of a line means.
export function headKey(app, state, stack, { y, width }) {
  const { ink, isDark } = app.colors();
  const heads = state.combine === "each" ? state.heads : [];
  const [start, own] = [100, 34];
  const perRow = Math.floor((width - start) / own);
  const shapes = heads.flatMap((head, place) => {
    const [x, top] = [start + (place % perRow) * own, y + Math.floor(place / perRow) * 18];
    return [
      { kind: "rectangle", x, y: top - 6, width: 12, height: 12, color: headColor(head, stack.heads, isDark) },
      { kind: "text", x: x + 15, y: top, text: String(head + 1), color: ink },
    ];
  });
  const rows = Math.ceil(heads.length / perRow);
  if (rows) shapes.push({ kind: "text", x: 8, y, text: "colour: head", color: ink });
  const text = "strength of a line: weight from 0 (invisible) to 1 (opaque)";
  shapes.push({ kind: "text", x: 8, y: y + rows * 18, text, color: ink });
  return { shapes, height: (rows + 1) * 18 };
}

// Returns the key of a matrix in a picture: the colours from no weight to the most, with the meaning of both ends.
export function rampKey(app, [low, high], { x, y }) {
  const { ink, heatRgb } = app.colors();
  const [color, start, steps] = [`rgb(${heatRgb.join(",")})`, x + 8 + 7 * low.length, 20];
  const ramp = Array.from({ length: steps }, (_, step) => ({
    kind: "rectangle",
    ...{ x: start + step * 6, y: y - 6, width: 6, height: 12, color, opacity: step / (steps - 1) },
  }));
  const end = start + steps * 6 + 8;
  return [
    { kind: "text", x, y, text: low, color: ink },
    ...ramp,
    { kind: "text", x: end, y, text: high, color: ink },
  ];
}

// Returns the same key as an element of the page.
export function rampLegend() {
  const [low, high] = [made("span"), made("span")];
  const element = made("span", { className: "legend" }, "weight ", low, made("i", { "aria-hidden": "true" }), high);
  const show = (ends) => [low, high].forEach((end, place) => (end.textContent = ends[place]));
  return { element, show };
}

export function percent(value) {
  if (value < 0.0005) return "< 0.1 %";
  return `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)} %`;
}

// Draws a head's shades, from 0 to 1, on a canvas with one pixel for each cell.
export function thumbnail(canvas, weights, rows, columns, colors) {
  canvas.width = Math.max(columns, 1);
  canvas.height = Math.max(rows, 1);
  if (!rows || !columns) return;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const [r0, g0, b0] = colors.cardRgb;
  const [r1, g1, b1] = colors.heatRgb;
  for (let index = 0; index < rows * columns; index++) {
    const weight = Math.min(weights[index], 1);
    image.data[4 * index] = r0 + (r1 - r0) * weight;
    image.data[4 * index + 1] = g0 + (g1 - g0) * weight;
    image.data[4 * index + 2] = b0 + (b1 - b0) * weight;
    image.data[4 * index + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

const FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
const escapeMarkup = (text) =>
  text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);

// A scene is {width, height, background, shapes}; a shape is a rectangle, a line, a text or a canvas.
export function sceneToSvg(scene) {
  const background = svgElement("rect", { width: "100%", height: "100%", fill: scene.background });
  const attributes = {
    xmlns: "http://www.w3.org/2000/svg",
    width: Math.ceil(scene.width),
    height: Math.ceil(scene.height),
  };
  return svgElement("svg", { ...attributes, "font-family": FONT }, background + scene.shapes.map(shapeToSvg).join(""));
}

function shapeToSvg(shape) {
  const { kind, x, y, width, height, size, color: fill, opacity = 1 } = shape;
  if (kind === "rectangle") return svgElement("rect", { x, y, width, height, fill, "fill-opacity": opacity });
  if (kind === "line") {
    const { x1, y1, x2, y2 } = shape;
    return svgElement("line", {
      x1,
      y1,
      x2,
      y2,
      stroke: fill,
      "stroke-opacity": opacity,
      "stroke-width": width ?? 1.5,
    });
  }
  if (kind === "image") {
    const style = "image-rendering:pixelated";
    const href = shape.canvas.toDataURL();
    return svgElement("image", { x, y, width: size, height: size, preserveAspectRatio: "none", style, href });
  }
  const turned = shape.turn ? { transform: `rotate(${shape.turn} ${x} ${y})` } : {};
  const anchor = { "text-anchor": shape.anchor ?? "start", "dominant-baseline": "central" };
  return svgElement("text", { x, y, fill, "font-size": size ?? 12, ...anchor, ...turned }, escapeMarkup(shape.text));
}

function svgElement(name, attributes, content = "") {
  const written = Object.entries(attributes).map(([key, value]) => {
    return ` ${key}="${typeof value === "number" ? Number(value.toFixed(3)) : escapeMarkup(value)}"`;
  });
  return `<${name}${written.join("")}>${content}</${name}>`;
}

export function paintScene(context, scene) {
  context.fillStyle = scene.background;
  context.fillRect(0, 0, scene.width, scene.height);
  for (const shape of scene.shapes) {
    context.save();
    context.globalAlpha = shape.opacity ?? 1;
    context.fillStyle = context.strokeStyle = shape.color ?? "#000";
    if (shape.kind === "rectangle") context.fillRect(shape.x, shape.y, shape.width, shape.height);
    else if (shape.kind === "line") {
      context.lineWidth = shape.width ?? 1.5;
      context.beginPath();
      context.moveTo(shape.x1, shape.y1);
      context.lineTo(shape.x2, shape.y2);
      context.stroke();
    } else if (shape.kind === "image") {
      context.imageSmoothingEnabled = false;
      context.drawImage(shape.canvas, shape.x, shape.y, shape.size, shape.size);
    } else paintText(context, shape);
    context.restore();
  }
}

function paintText(context, shape) {
  context.font = `${shape.size ?? 12}px ${FONT}`;
  context.textAlign = { start: "left", middle: "center", end: "right" }[shape.anchor ?? "start"];
  context.textBaseline = "middle";
  context.translate(shape.x, shape.y);
  context.rotate(((shape.turn ?? 0) * Math.PI) / 180);
  context.fillText(shape.text, 0, 0);
}

const LARGEST_SIDE = 16000; // pixels: beyond this, browsers give an empty canvas

export function pixelRatio(width, height) {
  return Math.min(window.devicePixelRatio || 1, LARGEST_SIDE / Math.max(width, height, 1));
}

export function download(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = made("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function exportPng(name, scene) {
  const canvas = document.createElement("canvas");
  const ratio = Math.min(2, LARGEST_SIDE / Math.max(scene.width, scene.height));
  canvas.width = Math.ceil(scene.width * ratio);
  canvas.height = Math.ceil(scene.height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  paintScene(context, scene);
  canvas.toBlob((blob) => download(name, blob, "image/png"));
}
