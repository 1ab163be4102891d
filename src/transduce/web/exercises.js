// Exercises that are checked on the spot: a number, a choice, or cells of a grid.

import { written } from "./learn_parts.js";
import { made } from "./paint.js";

let exercises = 0; // so far, for ids

function frame(ask, ...parts) {
  const verdict = made("p", { className: "verdict", role: "status" });
  const form = made("form", { className: "exercise" }, made("h3", { text: "Your turn" }), made("p", {}, ...written(ask)), ...parts, verdict);
  const tell = (isRight, text) => {
    verdict.className = `verdict ${isRight ? "right" : "not-yet"}`;
    verdict.replaceChildren(...written(`${isRight ? "Right." : "Not yet."} ${text}`));
  };
  const clear = () => {
    verdict.className = "verdict";
    verdict.textContent = "";
  };
  return { form, tell, clear };
}

// Reads a number as people write it: with a comma or a point, with either minus sign.
export function numberFrom(text) {
  const written = text.trim().replace("−", "-").replace(",", ".");
  return /^-?(\d+\.?\d*|\.\d+)(e-?\d+)?$/i.test(written) ? Number(written) : NaN;
}

// Asks for a number. `near` lists wrong answers that people give, each with what went wrong.
export function numberExercise({ ask, label, answer, within, near = [], explain }) {
  const id = `answer-${++exercises}`;
  const input = made("input", { id, inputmode: "decimal", autocomplete: "off", size: 10 });
  const row = made("p", { className: "answer" }, made("label", { for: id, text: label }), input, made("button", { text: "Check" }));
  const { form, tell, clear } = frame(ask, row);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = numberFrom(input.value);
    if (Number.isNaN(given)) return tell(false, "Write a number, such as 0.5.");
    const wanted = answer();
    if (Math.abs(given - wanted) <= within) return tell(true, explain());
    const known = near.find(([value]) => Math.abs(given - value()) <= within);
    tell(false, known ? known[1] : "Work it out term by term and try again.");
  });
  return { element: form, reset: clear };
}

// Asks to choose one of several statements; each says why it is right or wrong.
export function choiceExercise({ ask, options }) {
  const name = `answer-${++exercises}`;
  const rows = options.map(({ text }, index) =>
    made("label", { className: "option" }, made("input", { type: "radio", name, value: index }), made("span", { text })),
  );
  const list = made("fieldset", {}, made("legend", { className: "unseen", text: "Choose one" }), ...rows);
  const { form, tell, clear } = frame(ask, list, made("p", { className: "answer" }, made("button", { text: "Check" })));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = options[Number(new FormData(form).get(name) ?? -1)];
    if (!chosen) return tell(false, "Choose one of the answers first.");
    tell(Boolean(chosen.isRight), chosen.why);
  });
  return { element: form, reset: clear };
}

// Asks to mark cells of a grid; `isWanted(row, column)` says which, `mistakes(wrong)` what a wrong one means.
export function gridExercise({ ask, rows, columns, isWanted, mistakes, explain }) {
  const cells = [];
  const table = made("table", { className: "cells", "aria-label": "Cells to mark" });
  table.append(made("tr", {}, made("td"), ...columns.map((text) => made("th", { scope: "col", text: text.split(" ").at(-1) }))));
  rows.forEach((name, row) => {
    const line = made("tr", {}, made("th", { scope: "row", text: name }));
    columns.forEach((other, column) => {
      const box = made("input", { type: "checkbox", "aria-label": `${name} must not see ${other}` });
      cells.push({ row, column, box });
      line.append(made("td", {}, box));
    });
    table.append(line);
  });
  const { form, tell, clear } = frame(ask, made("div", { className: "scroll" }, table), made("p", { className: "answer" }, made("button", { text: "Check" })));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wrong = cells.filter(({ row, column, box }) => box.checked !== isWanted(row, column));
    if (wrong.length) tell(false, `${wrong.length} of ${cells.length} cells are not as they should be. ${mistakes(wrong[0])}`);
    else tell(true, explain());
  });
  return { element: form, reset: clear };
}
