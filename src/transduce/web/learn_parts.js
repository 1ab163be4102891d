// What every step of the learning page is made of: a question, an equation whose terms light up, a line of code, and the
// wrong ideas that people meet.

import { made } from "./paint.js";

// Makes a step. `equation` is what `equationOf` returns; `code` lists lines that the page quotes.
export function stepElement(app, { number, question, say, equation, picture, code, wrong, exercise }) {
  const heading = made("h2", { tabindex: "-1", id: `question-${number}`, text: `${number}. ${question}` });
  return made(
    "section",
    { className: "step", id: `step-${number}`, "aria-labelledby": heading.id },
    heading,
    ...say.map((text) => made("p", { className: "say" }, ...written(text))),
    equation.element,
    made("div", { className: "picture" }, ...picture),
    codeLines(app, code),
    wrongIdeas(wrong),
    exercise.element,
  );
}

// Returns a text with its raised parts, ^O or ^(5 + 1), as elements.
export function written(text) {
  return text.split(/(\^\w\b|\^[α¼]|\^\([^)]*\))/).map((part) => (part.startsWith("^") && part.length > 1 ? made("sup", { text: part.slice(1).replace(/^\(|\)$/g, "") }) : part));
}

// An equation as a list of parts: plain text, or [text, name, meaning] for a term. Pressing a term lights it and says what
// it means; `light(names)` lights those at work in the picture.
export function equationOf(label, parts) {
  const meaning = made("p", { className: "meaning", role: "status" });
  const terms = new Map();
  const line = made("p", { className: "formula", role: "group", "aria-label": label });
  for (const part of parts) {
    if (typeof part === "string") {
      line.append(...written(part));
      continue;
    }
    const [text, name, says] = part;
    const term = made("button", { type: "button", className: "term", "aria-pressed": "false" }, ...written(text));
    term.addEventListener("click", () => {
      const isLit = term.getAttribute("aria-pressed") === "true" && meaning.textContent !== "";
      light(isLit ? [] : [name]);
      meaning.replaceChildren(...written(isLit ? "" : says));
    });
    if (!terms.has(name)) terms.set(name, []);
    terms.get(name).push(term);
    line.append(term);
  }
  function light(names, says = "") {
    for (const [name, own] of terms) own.forEach((term) => term.setAttribute("aria-pressed", String(names.includes(name))));
    meaning.replaceChildren(...written(says));
  }
  return { element: made("div", { className: "law" }, line, meaning), light };
}

function codeLines(app, names) {
  const lines = names.map(([name, says]) => {
    const { path, line, text } = app.facts.code[name];
    return made(
      "figure",
      { className: "source" },
      made("figcaption", {}, ...written(says), " ", made("span", { className: "place", text: `${path}, line ${line}` })),
      made("pre", { tabindex: "0", "aria-label": `line ${line} of ${path}` }, made("code", { text })),
    );
  });
  return made("div", { className: "code" }, made("h3", { text: "In the code" }), ...lines);
}

function wrongIdeas(ideas) {
  const items = ideas.map(({ claim, truth }) =>
    made("details", {}, made("summary", {}, made("q", {}, ...written(claim))), made("div", { className: "truth" }, ...[truth].flat())),
  );
  return made("div", { className: "wrong" }, made("h3", { text: "Often told, and wrong" }), ...items);
}

export const paragraph = (...parts) => made("p", {}, ...parts.flatMap((part) => (typeof part === "string" ? written(part) : [part])));
export const strong = (text) => made("b", { text });

// A slider with its name and its value as text.
export function slider({ label, min, max, step = 1, value, shown = String, onInput }) {
  const id = `slider-${label.replace(/\W+/g, "-")}`;
  const input = made("input", { type: "range", id, min, max, step, value });
  const output = made("output", { for: id });
  const element = made("label", { className: "slider" }, made("span", { text: label }), input, output);
  const show = () => {
    output.textContent = shown(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    show();
    onInput(Number(input.value));
  });
  show();
  const set = (next) => {
    input.value = String(next);
    show();
  };
  return { element, set, get: () => Number(input.value), input };
}

// A choice among names; `set` keeps the chosen one where the list still has it.
export function chooser(label, onChange) {
  const select = made("select", {});
  const element = made("label", { className: "chooser" }, made("span", { text: label }), select);
  select.addEventListener("change", () => onChange(Number(select.value)));
  const fill = (texts, chosen) => {
    const key = texts.join("\n");
    if (select.dataset.key !== key) select.replaceChildren(...texts.map((text, value) => made("option", { value, text })));
    select.dataset.key = key;
    select.value = String(chosen);
    element.hidden = texts.length < 2;
  };
  return { element, fill, get: () => Number(select.value) };
}

// A bar with its value, as long as its share of 1.
export function bar(share, text, kind = "") {
  const filled = made("i");
  filled.style.setProperty("--share", String(Math.max(0, Math.min(share, 1))));
  return made("span", { className: `meter ${kind}` }, filled, made("span", { className: "value", text }));
}

// A grid of weights as a table: each row a query, each column a key; a hidden cell is hatched.
export function weightGrid({ label, rows, columns, weight, isVisible = () => true, chosen = -1, onRow }) {
  const table = made("table", { className: "weights" }, made("caption", { text: label }));
  table.append(
    made("tr", {}, made("td"), ...columns.map((text) => made("th", { scope: "col" }, made("span", { text, dir: "auto" })))),
  );
  rows.forEach((name, row) => {
    const head = made("th", { scope: "row", dir: "auto" });
    if (onRow) {
      const button = made("button", { type: "button", text: name, "aria-pressed": String(row === chosen) });
      button.addEventListener("click", () => onRow(row));
      head.append(button);
    } else head.textContent = name;
    const line = made("tr", { className: row === chosen ? "on" : "" }, head);
    columns.forEach((other, column) => {
      const value = weight(row, column);
      const seen = isVisible(row, column);
      const cell = made("td", {
        className: seen ? "" : "hidden-cell",
        title: seen ? `${name} → ${other}: ${value.toFixed(3)}` : `${name} may not see ${other}`,
      });
      cell.append(made("span", { className: "unseen", text: seen ? value.toFixed(2) : "hidden" }));
      cell.style.setProperty("--weight", String(Math.min(value, 1)));
      line.append(cell);
    });
    table.append(line);
  });
  return made("div", { className: "scroll wide", tabindex: "0", role: "group", "aria-label": label }, table);
}
