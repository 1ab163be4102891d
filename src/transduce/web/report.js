// The report as the views want it: tokens with the texts to show, and each kind of attention as a stack of heads.

const KNOWN_VERSION = 1;

export function readReport(json) {
  if (json.format !== "transduce-attention" || json.format_version !== KNOWN_VERSION) {
    throw new Error(
      `This page reads version ${KNOWN_VERSION} of transduce-attention, not ${json.format} ${json.format_version}.`,
    );
  }
  const source = sideOf(json.source, "source");
  const target = sideOf(json.target, "target");
  const start = {
    text: "<start>",
    wordText: "<start>",
    side: "start",
    index: -1,
    word: null,
    isSpecial: true,
    logProbability: null,
  };
  const read = [start, ...target.slice(0, -1)];
  const blocks = Object.fromEntries(Object.entries(json.weights).map(([name, block]) => [name, unpack(block)]));
  const stacks = {
    cross: plainStack("cross", "translation → source", blocks.cross, target, source),
    encoder: plainStack("encoder", "source → source", blocks.encoder, source, source),
    decoder: plainStack("decoder", "translation → translation", blocks.decoder, target, read),
  };
  stacks.all = joinedStack(stacks, source, target, read);
  return { json, source, target, stacks, steps: target.length };
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

// The words as they stand in the text, whatever pieces or bytes they were cut into. Spans count code points.
export function wordsOf({ text, tokens }) {
  const characters = [...text];
  const spans = [];
  for (const { word, start, end } of tokens) {
    if (word !== null)
      spans[word] = [Math.min(spans[word]?.[0] ?? start, start), Math.max(spans[word]?.[1] ?? end, end)];
  }
  return spans.map(([start, end]) => characters.slice(start, end).join("").trim());
}

// A piece that begins a word stands without the tokenizer's mark; one that continues it begins with +.
function shownText(token, before) {
  const body = token.text.replace(/^▁/, "");
  if (token.word === null) return token.text;
  if (!body) return "␣";
  const continues = before && before.word === token.word && before.text !== "▁" && !token.text.startsWith("▁");
  return continues ? `+${body}` : body;
}

function unpack(block) {
  const bytes = bytesOf(block.base64_u8);
  const [layers, heads, queries, keys] = block.shape;
  return { layers, heads, queries, keys, bytes };
}

export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function plainStack(name, title, block, queries, keys) {
  const size = block.queries * block.keys;
  return {
    name,
    title,
    layers: block.layers,
    heads: block.heads,
    queries,
    keys,
    weight: (layer, head, q, k) => block.bytes[(layer * block.heads + head) * size + q * block.keys + k] / 255,
    locate: (q, k) => ({ name, q, k }),
  };
}

// Encoder, decoder and cross-attention in one square: source and translation look at source and translation.
function joinedStack({ encoder, decoder, cross }, source, target, read) {
  const S = source.length;
  const locate = (q, k) => {
    if (q < S) return k < S ? { name: "encoder", q, k } : null;
    return k < S ? { name: "cross", q: q - S, k } : { name: "decoder", q: q - S, k: k - S };
  };
  const weight = (layer, head, q, k) => {
    if (q < S) return k < S && layer < encoder.layers ? encoder.weight(layer, head, q, k) : 0;
    if (layer >= cross.layers) return 0;
    return k < S ? cross.weight(layer, head, q - S, k) : decoder.weight(layer, head, q - S, k - S);
  };
  return {
    name: "all",
    title: "all in one",
    layers: Math.max(encoder.layers, decoder.layers),
    heads: encoder.heads,
    queries: [...source, ...target],
    keys: [...source, ...read],
    weight,
    locate,
  };
}

// Mean entropy of a head in bits; for all in one, of each part that has the layer.
export function entropyOf(report, stack, layer, head) {
  const entropy = report.json.entropy;
  if (stack !== "all") return entropy[stack][layer][head];
  const found = Object.values(entropy)
    .filter((rows) => layer < rows.length)
    .map((rows) => rows[layer][head]);
  return found.reduce((sum, value) => sum + value, 0) / found.length;
}
