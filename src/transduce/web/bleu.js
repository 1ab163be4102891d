// BLEU worked out: n-gram precisions with clipped counts, the brevity penalty, their product. As sacrebleu counts it, with
// its tokenizer "13a" and without smoothing.

export const ORDERS = 4;

// mteval-v13a's rules: punctuation stands by itself, but not a point or comma inside a number.
export function tokensOf(text) {
  return ` ${text.replaceAll("&quot;", '"').replaceAll("&amp;", "&").replaceAll("&lt;", "<").replaceAll("&gt;", ">")} `
    .replace(/([{-~[-` -&(-+:-@/])/g, " $1 ")
    .replace(/([^0-9])([.,])/g, "$1 $2 ")
    .replace(/([.,])([^0-9])/g, " $1 $2")
    .replace(/([0-9])(-)/g, "$1 $2 ")
    .split(/\s+/)
    .filter(Boolean);
}

// Returns the n-grams of a sentence with their counts, in order of appearance.
export function ngramsOf(tokens, order) {
  const counts = new Map();
  for (let start = 0; start + order <= tokens.length; start++) {
    const ngram = tokens.slice(start, start + order).join(" ");
    counts.set(ngram, (counts.get(ngram) ?? 0) + 1);
  }
  return counts;
}

// The counts of one pair by order: n-grams of the hypothesis, and those of them that the reference has (clipped).
export function countsOf(hypothesis, reference) {
  const [ours, theirs] = [tokensOf(hypothesis), tokensOf(reference)];
  const orders = Array.from({ length: ORDERS }, (_, index) => {
    const [found, wanted] = [ngramsOf(ours, index + 1), ngramsOf(theirs, index + 1)];
    const ngrams = [...found].map(([ngram, count]) => ({ ngram, count, matched: Math.min(count, wanted.get(ngram) ?? 0) }));
    const total = Math.max(ours.length - index, 0);
    return { ngrams, total, matched: ngrams.reduce((sum, { matched }) => sum + matched, 0) };
  });
  return { orders, length: ours.length, referenceLength: theirs.length, tokens: ours, referenceTokens: theirs };
}

// The score of a corpus: counts of all its pairs are added before anything is divided.
export function bleuOf(pairs) {
  const all = pairs.map(([hypothesis, reference]) => countsOf(hypothesis, reference));
  const sum = (value) => all.reduce((total, one) => total + value(one), 0);
  const orders = Array.from({ length: ORDERS }, (_, index) => ({
    matched: sum(({ orders: own }) => own[index].matched),
    total: sum(({ orders: own }) => own[index].total),
  }));
  const [length, referenceLength] = [sum((one) => one.length), sum((one) => one.referenceLength)];
  const precisions = orders.map(({ matched, total }) => (total ? matched / total : 0));
  const brevity = length >= referenceLength ? 1 : length ? Math.exp(1 - referenceLength / length) : 0;
  const mean = precisions.every((precision) => precision > 0)
    ? Math.exp(precisions.reduce((total, precision) => total + Math.log(precision), 0) / ORDERS)
    : 0;
  return { orders, precisions, brevity, length, referenceLength, score: 100 * brevity * mean, pairs: all };
}
