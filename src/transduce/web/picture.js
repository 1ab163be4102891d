// The part of the report that a state selects: tokens or words as rows and columns, and a matrix of weights for each head.

const SUBSCRIPTS = [..."₀₁₂₃₄₅₆₇₈₉"];

// Returns the rows or columns: each is a token, or the pieces of a word.
export function groupsOf(tokens, { words, specials }, step) {
  const groups = [];
  tokens.forEach((token, index) => {
    if (specials && token.isSpecial) return;
    const last = groups.at(-1);
    if (words && last && token.word !== null && last.word === token.word) {
      last.members.push(index);
      return;
    }
    const isFuture = token.side === "target" && token.index >= step;
    const isStep = token.side === "target" && token.index === step - 1;
    groups.push({
      members: [index],
      text: words ? token.wordText : token.text,
      word: token.word,
      isSpecial: token.isSpecial,
      isFuture,
      isStep,
      logProbability: token.logProbability,
    });
  });
  return numberRepeated(groups, tokens);
}

// Adds the position to a text that occurs more than once, to tell its tokens apart.
function numberRepeated(groups, tokens) {
  const counts = new Map();
  for (const { text } of groups) counts.set(text, (counts.get(text) ?? 0) + 1);
  return groups.map((group) => {
    if (counts.get(group.text) === 1) return group;
    const position = String(tokens[group.members[0]].index + 1);
    return { ...group, text: group.text + [...position].map((digit) => SUBSCRIPTS[digit]).join("") };
  });
}

const MOST_LINES = 16000; // without a token in focus; more take seconds to draw
export const INVISIBLE = 0.02; // lines of less weight cannot be seen

// Returns the least weight that the head view draws. A row sums to 1, so it has at most 1/w weights of w or more.
export function faintestLine(rows, state, focus) {
  const layers = state.combine === "each" ? state.heads.length : 1;
  return focus ? INVISIBLE : Math.max(INVISIBLE, (rows * layers) / MOST_LINES);
}

let remembered = { key: "", picture: null };

export function pictureOf(report, state) {
  const key = [state.stack, state.layer, state.words, state.specials, state.step].join();
  if (remembered.key === key && remembered.picture.report === report) return remembered.picture;
  const stack = report.stacks[state.stack];
  const queries = groupsOf(stack.queries, state, state.step);
  // Only queries can be later than the step that is shown: keys are tokens that were read.
  const keys = groupsOf(stack.keys, state, Infinity);
  const matrices = new Map();
  const matrix = (head) => {
    if (!matrices.has(head)) matrices.set(head, groupedWeights(stack, state.layer, head, queries, keys));
    return matrices.get(head);
  };
  remembered = { key, picture: { report, stack, layer: state.layer, queries, keys, matrix } };
  return remembered.picture;
}

// Weights to the pieces of a word are summed, and those from them averaged, so that a row still sums to 1.
export function groupedWeights(stack, layer, head, queries, keys) {
  const result = new Float32Array(queries.length * keys.length);
  queries.forEach((query, row) => {
    if (query.isFuture) return;
    keys.forEach((key, column) => {
      let sum = 0;
      for (const q of query.members) for (const k of key.members) sum += stack.weight(layer, head, q, k);
      result[row * keys.length + column] = sum / query.members.length;
    });
  });
  return result;
}

// One matrix for several heads: their mean or their maximum.
export function combinedWeights(picture, heads, combine) {
  const key = `${combine} ${heads}`;
  picture.combined ??= new Map();
  if (!picture.combined.has(key)) picture.combined.set(key, newlyCombined(picture, heads, combine));
  return picture.combined.get(key);
}

function newlyCombined(picture, heads, combine) {
  const size = picture.queries.length * picture.keys.length;
  const result = new Float32Array(size);
  for (const head of heads) {
    const matrix = picture.matrix(head);
    for (let index = 0; index < size; index++) {
      result[index] =
        combine === "max" ? Math.max(result[index], matrix[index]) : result[index] + matrix[index] / heads.length;
    }
  }
  return result;
}

// Layers of lines or shades to draw: one for each head in its colour, or one for all.
export function layersOf(picture, state) {
  if (state.combine === "each") return state.heads.map((head) => ({ head, weights: picture.matrix(head) }));
  return state.heads.length ? [{ head: null, weights: combinedWeights(picture, state.heads, state.combine) }] : [];
}

export function groupIndex(groups, token) {
  return groups.findIndex((group) => group.members.includes(token));
}

// The pinned or pointed-at tokens as a set of rows (side "query") or columns (side "key"); null if there are none.
export function focusOf(picture, state, hover) {
  const { side, tokens } = hover ?? { side: state.side, tokens: state.pins };
  const groups = side === "key" ? picture.keys : picture.queries;
  const members = [...new Set(tokens.map((token) => groupIndex(groups, token)))].filter((index) => index >= 0);
  return members.length ? { side, members } : null;
}

// Returns, for each row or column of the other side, the sum of its weights with those in focus.
export function summedFocus(picture, weights, focus) {
  const columns = picture.keys.length;
  if (focus.side === "query") {
    return picture.keys.map((_, k) => focus.members.reduce((sum, q) => sum + weights[q * columns + k], 0));
  }
  return picture.queries.map((_, q) => focus.members.reduce((sum, k) => sum + weights[q * columns + k], 0));
}

export function headsText(state) {
  if (state.heads.length === 1) return `head ${state.heads[0] + 1}`;
  return `${state.combine === "max" ? "max" : "mean"} of ${state.heads.length} heads`;
}

// Returns the cell of a token and the token of the other side that has the most weight with it in the chosen head.
export function strongestCell(report, { stack: name, layer, head }, side, token) {
  const stack = report.stacks[name];
  const cells = (side === "query" ? stack.keys : stack.queries).map((_, other) =>
    side === "query" ? [token, other] : [other, token],
  );
  const weight = (cell) => stack.weight(layer, head, ...cell);
  return cells.reduce((best, cell) => (weight(cell) > weight(best) ? cell : best), cells[0]);
}

const DECADES = 3; // the logarithmic scale ends at 0.001

// Returns how dark each weight is drawn, from 0 to 1. On the linear scale `strongest` is drawn darkest.
export function shadesOf(weights, columns, scale, strongest = 1) {
  if (scale === "log") return weights.map((weight) => (weight > 0 ? Math.max(0, 1 + Math.log10(weight) / DECADES) : 0));
  if (scale === "linear") return weights.map((weight) => weight / strongest);
  const shades = new Float32Array(weights.length);
  for (let start = 0; start < weights.length; start += columns) {
    const row = weights.subarray(start, start + columns);
    const largest = row.reduce((most, weight) => Math.max(most, weight), 0);
    row.forEach((weight, column) => {
      shades[start + column] = largest ? weight / largest : 0;
    });
  }
  return shades;
}

// Returns what the two ends of the colour scale mean.
export function scaleEnds(scale, strongest = "1") {
  return { linear: ["0", strongest], log: [`${10 ** -DECADES} or less`, "1 (logarithmic)"], row: ["0", "largest of its row"] }[scale];
}
