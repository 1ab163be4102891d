// Vectors as heat strips: one cell for each component, blue where it is positive, orange where it is negative.

import { made } from "./paint.js";

const NEGATIVE = { light: [179, 84, 30], dark: [240, 150, 90] };

export function largestOf(vectors) {
  return Math.max(1e-9, ...vectors.map((vector) => Math.max(...Array.from(vector, Math.abs))));
}

// Returns a strip; the strongest colour is that of `largest`.
export function heatStrip(values, largest, colors, label = "") {
  const canvas = made("canvas", { className: "strip", ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }) });
  canvas.width = values.length;
  canvas.height = 1;
  const context = canvas.getContext("2d");
  const image = context.createImageData(values.length, 1);
  Array.from(values).forEach((value, index) => {
    const share = Math.min(Math.abs(value) / largest, 1);
    const end = value >= 0 ? colors.heatRgb : NEGATIVE[colors.isDark ? "dark" : "light"];
    colors.cardRgb.forEach((start, channel) => {
      image.data[4 * index + channel] = start + (end[channel] - start) * share;
    });
    image.data[4 * index + 3] = 255;
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

// Returns a table of every key with its vector, its score and its weight, for one query: section 3.2.1 with all keys.
// `terms` names the columns to light: key, product, score, weight, value. The share of a key is that of weight × ‖v‖. Choosing a key calls `onKey`.
export function keyStrips({ numbers, steps, names, place, colors, terms = [], onKey }) {
  const [keys, values, products] = [numbers.key, numbers.value, numbers.key.map((key) => productsOf(numbers, place.q, key))];
  const largest = { key: largestOf(keys), product: largestOf(products), value: largestOf(values) };
  const moved = values.map((value, k) => steps.weights[k] * Math.hypot(...value));
  const all = moved.reduce((sum, one) => sum + one, 0) || 1;
  const lit = (name) => (terms.includes(name) ? "lit" : "");
  const columns = [["key", "k"], ["product", numbers.additive ? "v tanh(q + k)" : "q × k"], ["score", "score"], ["weight", "weight"], ["value", "v"], ["share", "share"]];
  const head = made("tr", {}, made("th", { scope: "col", text: "key of" }), ...columns.map(([name, text]) => made("th", { scope: "col", text, className: `${lit(name)} ${name}-column` })));
  const body = made("tbody");
  names.forEach((name, k) => {
    const button = made("button", { type: "button", text: name, dir: "auto", "aria-pressed": String(k === place.k) });
    button.addEventListener("click", () => onKey?.(k));
    const seen = steps.visible[k];
    const weight = steps.weights[k];
    const gauge = made("span", { className: "gauge" });
    gauge.style.setProperty("--share", String(Math.min(weight, 1)));
    body.append(
      made(
        "tr",
        { className: [k === place.k && "on", !seen && "masked"].filter(Boolean).join(" ") },
        made("th", { scope: "row" }, button),
        made("td", { className: `${lit("key")} key-column` }, heatStrip(keys[k], largest.key, colors)),
        made("td", { className: `${lit("product")} product-column` }, heatStrip(products[k], largest.product, colors)),
        made("td", { className: `number ${lit("score")} score-column`, text: seen ? steps.scores[k].toFixed(2).replace("-", "−") : "−∞" }),
        made("td", { className: `weight-cell ${lit("weight")} weight-column` }, made("span", { className: "number", text: weight.toFixed(3) }), gauge),
        made("td", { className: `${lit("value")} value-column` }, heatStrip(values[k], largest.value, colors)),
        made("td", { className: "number share-column", text: (moved[k] / all).toFixed(3) }),
      ),
    );
  });
  return made("div", { className: "scroll strips", tabindex: "0", role: "group", "aria-label": "Every key with its vector, score and weight" }, made("table", { "aria-label": "Keys" }, made("thead", {}, head), body));
}

function productsOf(numbers, q, key) {
  return Array.from(numbers.query[q], (value, index) =>
    numbers.additive ? numbers.additive[index] * Math.tanh(value + key[index]) : value * key[index],
  );
}
