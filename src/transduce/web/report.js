// The report as the views need it: tokens with the texts to show, and each block of attention as a stack of heads.

const KNOWN_VERSIONS = [1, 2];
const VERSION_1_AXES = { encoder: ["source", "source"], decoder: ["target", "read"], cross: ["target", "source"] };

// Reads a report of any version that the page knows.
export function readReport(given) {
  if (given.format !== "transduce-attention" || !KNOWN_VERSIONS.includes(given.format_version)) {
    throw new Error(
      `This page reads versions ${KNOWN_VERSIONS.join(" and ")} of transduce-attention, not ${given.format} ${given.format_version}.`,
    );
  }
  const json = given.format_version === 1 ? fromVersion1(given) : given;
  const [source, target] = [sideOf(json.source, "source"), sideOf(json.target, "target")];
  const start = { text: "<start>", wordText: "<start>", side: "start", index: -1, word: null, isSpecial: true };
  const read = target.length ? [start, ...target.slice(0, -1)] : [];
  const axes = { source, target, read, "source+read": [...source, ...read] };
  const names = sideNames(source, target, json.second);
  const blocks = Object.entries(json.blocks).map(([name, block]) => plainStack(name, block, axes, names));
  const first = blocks.find(({ axes: [queries, keys] }) => queries === "target" && keys === "source") ?? blocks[0];
  const derived = [...joinedStacks(blocks, axes), ...betweenTexts(blocks, json.second)];
  const stacks = Object.fromEntries([...blocks, ...derived].map((stack) => [stack.name, stack]));
  return { json, source, target, names, stacks, first: first.name, steps: target.length };
}

// Turns version 1 into the form of version 2: it had three fixed kinds of attention. Weights keep their steps of 1/255.
function fromVersion1({ weights, entropy, numbers, alignment, ...others }) {
  const block = (name, [queries, keys]) => ({
    ...weights[name],
    queries,
    keys,
    entropy: entropy[name],
    has_projections: true,
    numbers: numbers && { scores: numbers.scores, scale: numbers.scale, ...numbers[name] },
  });
  const blocks = Object.entries(VERSION_1_AXES).map(([name, axes]) => [name, block(name, axes)]);
  return {
    ...others,
    format_version: 2,
    alignment: { block: "cross", ...alignment },
    blocks: Object.fromEntries(blocks),
  };
}

// Names the two sides. A network with only one side has a text, or two, and no translation.
function sideNames(source, target, second) {
  if (second) return { source: "texts A, B", target: "text" };
  return source.length && target.length
    ? { source: "source", target: "translation" }
    : { source: "text", target: "text" };
}

function sideOf(sentence, side) {
  const words = wordsOf(sentence);
  return sentence.tokens.map((token, index) => ({
    text: shownText(token, sentence.tokens[index - 1]),
    wordText: token.word === null ? token.text : words[token.word],
    side,
    index,
    word: token.word === null ? null : `${side}${token.word}`,
    isSpecial: token.word === null,
    logProbability: token.log_probability,
  }));
}

// Returns the words as the text has them, for any way of cutting them into tokens. Spans count code points.
export function wordsOf({ text, tokens }) {
  const characters = [...text];
  const spans = [];
  for (const { word, start, end } of tokens) {
    if (word !== null)
      spans[word] = [Math.min(spans[word]?.[0] ?? start, start), Math.max(spans[word]?.[1] ?? end, end)];
  }
  return spans.map(([start, end]) => characters.slice(start, end).join("").trim());
}

// Returns what the page writes for a token: without the tokenizer's mark, and with + if it continues a word.
function shownText(token, before) {
  const body = token.text.replace(/^▁/, "");
  if (token.word === null) return token.text;
  if (!body) return "␣";
  const continues = before && before.word === token.word && before.text !== "▁" && !token.text.startsWith("▁");
  return continues ? `+${body}` : body;
}

// Half precision as numbers: weights lie between 0 and 1, whose bits are 0 to 0x3c00.
const HALVES = Float32Array.from({ length: 0x3c01 }, (_, bits) =>
  bits < 0x400 ? bits * 2 ** -24 : (1 + (bits & 0x3ff) / 0x400) * 2 ** ((bits >> 10) - 15),
);
const BYTES = Float32Array.from({ length: 256 }, (_, byte) => byte / 255);

// Returns weights as codes into a table of values, and how many decimals of a value are known.
function unpack(block) {
  return block.base64_u8 === undefined
    ? { codes: new Uint16Array(bytesOf(block.base64_f16).buffer), table: HALVES, digits: 3 }
    : { codes: bytesOf(block.base64_u8), table: BYTES, digits: 2 };
}

// Returns the factor with which each row sums to 1. Rounded weights may not: 200 bytes of 1/255 sum to 0.78.
function rowFactors(codes, table, columns) {
  return Float32Array.from({ length: codes.length / (columns || 1) }, (_, row) => {
    let sum = 0;
    for (let column = 0; column < columns; column++) sum += table[codes[row * columns + column]];
    return sum ? 1 / sum : 1;
  });
}

// Prints the digits of a weight that are known: two decimals of a byte, three significant digits of half precision.
export function weightText(weight, digits) {
  if (digits < 3 || weight >= 0.0095) return weight.toFixed(digits);
  if (weight === 0) return "0";
  return weight < 0.00005 ? "< 0.0001" : weight.toFixed(4);
}

export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function plainStack(name, block, axes, names) {
  const { codes, table, digits } = unpack(block);
  const [layers, heads, rows, columns] = block.shape;
  const factors = rowFactors(codes, table, columns);
  const isCausal = block.keys.endsWith("read");
  const sides = sidesOf(block, names);
  return {
    name,
    title: `${sides[0]} → ${sides[0] === sides[1] ? "itself" : sides[1]}`,
    sides,
    axes: [block.queries, block.keys],
    layers,
    heads,
    queries: axes[block.queries],
    keys: axes[block.keys],
    digits,
    isCausal,
    hasProjections: block.has_projections,
    weight: (layer, head, q, k) => {
      const row = (layer * heads + head) * rows + q;
      return table[codes[row * columns + k]] * factors[row];
    },
    entropy: (layer, head) => block.entropy[layer][head],
    // Both axes end at the same position, and a query sees nothing that is read after it.
    isVisible: (q, k) => !isCausal || k <= q + columns - rows,
    locate: (q, k) => ({ name, q, k }),
  };
}

// Returns the names of the two axes, of the queries first.
function sidesOf({ queries, keys }, names) {
  const nameOf = (part) => names[part === "read" ? "target" : part];
  return [queries, keys].map((axis) => axis.split("+").map(nameOf).join(" and "));
}

// Returns all blocks as one square of source and translation on both axes, if they fit into one.
function joinedStacks(parts, axes) {
  const partOf = (queries, keys) => parts.find((part) => part.axes[0] === queries && part.axes[1] === keys);
  const grid = ["source", "target"].map((queries) => ["source", "read"].map((keys) => partOf(queries, keys)));
  const placed = grid.flat().filter(Boolean);
  const fits = placed.length === parts.length && parts.every((part) => part.heads === parts[0].heads);
  if (parts.length < 2 || !fits) return [];
  const S = axes.source.length;
  const partAt = (q, k) => grid[Number(q >= S)][Number(k >= S)];
  const within = (index) => (index < S ? index : index - S);
  const layers = Math.max(...parts.map((part) => part.layers));
  const stack = {
    name: "all",
    title: "all in one",
    sides: ["", ""],
    layers,
    heads: parts[0].heads,
    queries: [...axes.source, ...axes.target],
    keys: axes["source+read"],
    digits: Math.min(...parts.map((part) => part.digits)),
    hasProjections: parts.some((part) => part.hasProjections),
    weight: (layer, head, q, k) => {
      const part = partAt(q, k);
      return part && layer < part.layers ? part.weight(layer, head, within(q), within(k)) : 0;
    },
    entropy: (layer, head) => {
      const found = parts.filter((part) => layer < part.layers).map((part) => part.entropy(layer, head));
      return found.reduce((sum, bits) => sum + bits, 0) / found.length;
    },
    locate: (q, k) => partAt(q, k) && { name: partAt(q, k).name, q: within(q), k: within(k) },
  };
  return [stack];
}

// Returns the four parts of a block in which two texts that were read together attend to themselves and to each other.
function betweenTexts(blocks, second) {
  if (!second) return [];
  const texts = { A: [0, second], B: [second, Infinity] };
  const pairs = ["AA", "AB", "BA", "BB"].map((pair) => [...pair]);
  const whole = blocks.filter(({ axes: [queries, keys] }) => queries === "source" && keys === "source");
  return whole.flatMap((stack) => pairs.map(([from, to]) => partOfStack(stack, from, to, texts)));
}

function partOfStack(stack, from, to, texts) {
  const [queries, keys] = [stack.queries.slice(...texts[from]), stack.keys.slice(...texts[to])];
  const [row, column] = [texts[from][0], texts[to][0]];
  const weight = (layer, head, q, k) => stack.weight(layer, head, q + row, k + column);
  return {
    ...stack,
    name: `${stack.name}_${from}${to}`,
    title: `text ${from} → ${from === to ? "itself" : `text ${to}`}`,
    sides: [`text ${from}`, `text ${to}`],
    isPart: true,
    queries,
    keys,
    weight,
    entropy: (layer, head) => meanEntropy((q, k) => stack.weight(layer, head, q + row, k), queries, stack.keys),
    locate: (q, k) => ({ name: stack.name, q: q + row, k: k + column }),
  };
}

function meanEntropy(weight, queries, keys) {
  const bits = (value) => (value > 0 ? -value * Math.log2(value) : 0);
  const rows = queries.map((_, q) => keys.reduce((sum, _key, k) => sum + bits(weight(q, k)), 0));
  return rows.reduce((sum, row) => sum + row, 0) / rows.length;
}

const BEGINS_A_WORD = /^(▁|<.+>$|[\p{P}\p{S}]|[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}])/u;

// Returns what the page writes for a candidate: with + if it would follow the token before it without a space.
export function candidateText({ text }, before) {
  if (text === "▁") return "␣"; // as the token is written once it is chosen
  const continues = before && before.text !== "▁" && !BEGINS_A_WORD.test(text);
  return continues ? `+${text}` : text.replace(/^▁(?=.)/, "");
}
