// bertviz's neuron view: section 3.2.1 step by step for one head and a pair of tokens, as numbers and bars.

import { made } from "./paint.js";
import { stepsOf } from "./numbers.js";
import { groupsOf } from "./picture.js";
import { weightText } from "./report.js";
import { range } from "./state.js";
import { keyStrips } from "./strips.js";

export function createNeuronView(app) {
  const choices = made("div", { className: "choices" });
  const selects = { head: labelled("head"), query: labelled("query"), key: labelled("key") };
  const body = made("div");
  const element = made("div", { className: "vectors" }, choices, body);
  let shown = null;

  function labelled(text) {
    const select = made("select", { id: `neuron-${text}` });
    choices.append(made("label", {}, `${text} `, select));
    return select;
  }

  selects.head.addEventListener("change", () =>
    app.store.set({ head: Number(selects.head.value), heads: [Number(selects.head.value)] }),
  );
  selects.query.addEventListener("change", () =>
    app.store.set({ at: [Number(selects.query.value), app.store.get().at[1]] }),
  );
  selects.key.addEventListener("change", () =>
    app.store.set({ at: [app.store.get().at[0], Number(selects.key.value)] }),
  );

  function fill(select, texts, chosen) {
    const key = texts.join("\n");
    if (select.dataset.key !== key)
      select.replaceChildren(...texts.map((text, index) => made("option", { value: index, text })));
    select.dataset.key = key;
    select.value = String(chosen);
  }

  async function render(state) {
    const stack = app.report.stacks[state.stack];
    selects.head.parentElement.hidden = stack.heads === 1;
    fill(
      selects.head,
      range(stack.heads).map((head) => `head ${head + 1}`),
      state.head,
    );
    fill(
      selects.query,
      stack.queries.map((token, index) => `${index + 1}. ${token.text}`),
      state.at[0],
    );
    fill(
      selects.key,
      stack.keys.map((token, index) => `${index + 1}. ${token.text}`),
      state.at[1],
    );
    const place = stack.locate(...state.at);
    const title = `${stack.queries[state.at[0]].text} → ${stack.keys[state.at[1]].text}`;
    shown = null;
    if (!place || state.layer >= app.report.stacks[place.name].layers) {
      body.replaceChildren(
        made("p", {
          className: "quiet",
          text: `No head connects ${title}: the network has no attention between them.`,
        }),
      );
      return;
    }
    const part = app.report.stacks[place.name];
    if (!part.hasProjections) {
      body.replaceChildren(
        made("p", { className: "quiet", text: `This network has no queries, keys and values to show of ${part.name}.` }),
      );
      return;
    }
    const [numbers, fault] = await numbersFor(place.name, state);
    if (app.store.get() !== state) return; // the user has chosen something else meanwhile
    if (!numbers) body.replaceChildren(...withoutNumbers(part, state, { place, title, fault }));
    else {
      shown = {
        steps: stepsOf(numbers, part.isVisible, place.q, place.k),
        numbers,
        part,
        place,
        title,
        layer: state.layer,
        head: state.head,
      };
      body.replaceChildren(...sections(shown), ...everyKey(shown));
    }
  }

  // All keys at once, for the query that is pinned in the other views.
  function everyKey({ numbers, steps, part, place }) {
    const names = groupsOf(part.keys, {}, Infinity).map(({ text }) => text);
    const [q] = app.store.get().at;
    const onKey = (k) => {
      const at = app.report.stacks[app.store.get().stack].keys.indexOf(part.keys[k]);
      app.store.set({ at: [q, at] });
    };
    return [
      made("h2", { text: `5. Every key, for the query of ${part.queries[place.q].text}` }),
      made("p", { className: "quiet", text: "Each strip is a vector: blue above 0, orange below. The share is that of weight × length of v: a large weight on a short value moves little." }),
      keyStrips({ numbers, steps, names, place, colors: app.colors(), onKey }),
    ];
  }

  async function numbersFor(name, state) {
    if (!app.numbers) return [null, null];
    try {
      return [await app.numbers(name, state.layer, state.head), null];
    } catch (fault) {
      return [null, fault];
    }
  }

  return { element, render, scene: (state) => neuronScene(app, state, shown) };
}

function withoutNumbers(part, state, { place, title, fault }) {
  const weights = part.keys.map((_, k) => part.weight(state.layer, state.head, place.q, k));
  const advice = ["Make it with ", made("code", { text: "transduce attention … --numbers" }), " to follow q, k and v."];
  return [
    fault
      ? made("p", { role: "status", text: `The server did not give q, k and v: ${fault.message}` })
      : made("p", {}, "This page carries weights only. ", ...advice),
    made("h2", { text: `The softmax row of ${title}` }),
    rowTable(part, { weights }, place),
  ];
}

function sections({ steps, numbers, part, place, title }) {
  const score = steps.scores[place.k];
  const isAdditive = Boolean(numbers.additive);
  const d = numbers.query[place.q].length;
  const compatibility = isAdditive ? "v · tanh(q + k)" : "q · k";
  const scale =
    isAdditive || numbers.scores === "unscaled"
      ? "not scaled"
      : `scale = 1/√d_k = 1/√${d} = ${numbers.scale.toFixed(4)}`;
  return [
    made("h2", {
      text: `1. The query of ${part.queries[place.q].text} and the key of ${part.keys[place.k].text}, ${d} numbers each`,
    }),
    vectorTable(
      ["q", "k", isAdditive ? "v tanh(q+k)" : "q × k"],
      [numbers.query[place.q], numbers.key[place.k], steps.terms],
      "Components of query and key",
    ),
    made("h2", { text: isAdditive ? "2. Their score" : "2. Their product, scaled" }),
    made("p", {
      className: "equation",
      text: `${compatibility} = ${steps.products[place.k].toFixed(4)}; ${scale}; score = ${score.toFixed(4)}`,
    }),
    made("h2", { text: "3. All scores, the mask and the softmax" }),
    made("p", { className: "quiet", text: maskText(part, steps, title) }),
    rowTable(part, steps, place),
    made("h2", { text: "4. Values, weighted and added" }),
    vectorTable(
      ["v of the key", "weight × v", "Σ weight × v"],
      [
        numbers.value[place.k],
        Array.from(numbers.value[place.k], (value) => value * steps.weights[place.k]),
        steps.output,
      ],
      "Components of value and output",
    ),
  ];
}

function maskText(part, steps, title) {
  const hidden = steps.visible.filter((isVisible) => !isVisible).length;
  if (!part.isCausal) return "Nothing is masked here: every key may be seen.";
  return hidden
    ? `${hidden} later positions are masked: their scores become −∞ and their weights 0.`
    : `The last position sees everything: no mask in the row of ${title}.`;
}

function rowTable(part, { products, scores, visible, weights }, place) {
  const heads = ["key", ...(scores ? ["product", "score", "visible"] : []), "weight", "bar"];
  const body = made("tbody");
  const names = groupsOf(part.keys, {}, Infinity).map(({ text }) => text);
  weights.forEach((weight, k) => {
    const row = made(
      "tr",
      { className: k === place.k ? "on" : "" },
      made("th", { scope: "row", text: names[k], dir: "auto" }),
    );
    if (scores) {
      row.append(
        numberCell(products[k].toFixed(3)),
        numberCell(visible[k] ? scores[k].toFixed(3) : "−∞"),
        numberCell(visible[k] ? "yes" : "no"),
      );
    }
    row.append(numberCell(scores ? weight.toFixed(4) : weightText(weight, part.digits)), gaugeCell(weight));
    body.append(row);
  });
  const header = made(
    "tr",
    {},
    ...heads.map((text) =>
      made("th", { scope: "col", text, className: text === "key" || text === "bar" ? "" : "number" }),
    ),
  );
  return scrolling(made("table", {}, made("thead", {}, header), body), "Scores and weights of every key");
}

function vectorTable(names, vectors, label) {
  const largest = vectors.map((vector) => Math.max(1e-9, ...Array.from(vector, Math.abs)));
  const header = made(
    "tr",
    {},
    made("th", { scope: "col", text: "#" }),
    ...names.flatMap((name) => [made("th", { scope: "col", className: "number", text: name }), made("td")]),
  );
  const body = made("tbody");
  for (let index = 0; index < vectors[0].length; index++) {
    const row = made("tr", {}, made("th", { scope: "row", className: "index", text: String(index + 1) }));
    vectors.forEach((vector, which) =>
      row.append(numberCell(vector[index].toFixed(4)), divergingCell(vector[index] / largest[which])),
    );
    body.append(row);
  }
  const sums = made("tr", { className: "on" }, made("th", { scope: "row", text: "Σ" }));
  vectors.forEach((vector) =>
    sums.append(
      numberCell(
        Array.from(vector)
          .reduce((total, value) => total + value, 0)
          .toFixed(4),
      ),
      made("td"),
    ),
  );
  return scrolling(made("table", {}, made("thead", {}, header), body, made("tfoot", {}, sums)), label);
}

export function scrolling(table, label) {
  return made("div", { className: "scroll", tabindex: 0, role: "group", "aria-label": label }, table);
}

export function numberCell(text) {
  return made("td", { className: "number", text });
}

export function gaugeCell(share) {
  const gauge = made("span", { className: "gauge" });
  gauge.style.setProperty("--share", String(Math.min(share, 1)));
  return made("td", { className: "bar-cell" }, gauge);
}

function divergingCell(share) {
  const bar = made("i");
  bar.style.setProperty("--from", `${50 + Math.min(share, 0) * 50}%`);
  bar.style.setProperty("--share", `${Math.abs(share) * 50}%`);
  return made(
    "td",
    { className: "bar-cell" },
    made("span", { className: share < 0 ? "diverging minus" : "diverging" }, bar),
  );
}

function neuronScene(app, state, shown) {
  const colors = app.colors();
  const shapes = [];
  let y = 14;
  const strip = (name, values) => {
    const largest = Math.max(1e-9, ...Array.from(values, Math.abs));
    shapes.push({ kind: "text", x: 8, y: y + 24, text: name, color: colors.ink });
    Array.from(values).forEach((value, index) => {
      const height = (24 * Math.abs(value)) / largest;
      shapes.push({
        kind: "rectangle",
        x: 130 + index * 9,
        y: value < 0 ? y + 24 : y + 24 - height,
        width: 8,
        height,
        color: value < 0 ? "#b3541e" : colors.mark,
      });
    });
    y += 58;
    return 140 + values.length * 9;
  };
  const stack = app.report.stacks[state.stack];
  const [q, k] = state.at;
  shapes.push({
    kind: "text",
    x: 8,
    y,
    text: `${stack.queries[q].text} → ${stack.keys[k].text}, layer ${state.layer + 1}, head ${state.head + 1}`,
    color: colors.ink,
    size: 14,
  });
  y += 16;
  const widths = shown
    ? [
        ["q", shown.numbers.query[shown.place.q]],
        ["k", shown.numbers.key[shown.place.k]],
        ["q × k", shown.steps.terms],
        ["scores", shown.steps.scores],
        ["weights", shown.steps.weights],
        ["Σ weight × v", shown.steps.output],
      ].map(([name, values]) => strip(name, values))
    : [
        strip(
          "weights",
          stack.keys.map((_, key) => stack.weight(state.layer, state.head, q, key)),
        ),
      ];
  return { width: Math.max(420, ...widths), height: y + 8, background: colors.paper, shapes };
}
