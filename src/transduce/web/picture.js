// What a state selects of the report: tokens or words as rows and columns, and one matrix of weights for each head.

// Rows and columns are groups of tokens: single ones, or the pieces of a word.
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
  return groups;
}

let remembered = { key: "", picture: null };

export function pictureOf(report, state) {
  const key = [state.stack, state.layer, state.words, state.specials, state.step].join();
  if (remembered.key === key && remembered.picture.report === report) return remembered.picture;
  const stack = report.stacks[state.stack];
  const queries = groupsOf(stack.queries, state, state.step);
  // What was read may be looked back at; only queries lie in the future.
  const keys = groupsOf(stack.keys, state, Infinity);
  const matrices = new Map();
  const matrix = (head) => {
    if (!matrices.has(head)) matrices.set(head, groupedWeights(stack, state.layer, head, queries, keys));
    return matrices.get(head);
  };
  remembered = { key, picture: { report, stack, layer: state.layer, queries, keys, matrix } };
  return remembered.picture;
}

// Weights to a word's pieces are summed, weights from them averaged: a row still spends one unit of attention.
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

// What the tokens of the other side get from, or give to, those in focus together.
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
