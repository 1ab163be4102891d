// Small matrices as arrays of rows, and the equations of sections 3.2.1 and 6.1 on them.

export const product = (a, b) => a.map((row) => b[0].map((_, column) => dot(row, b.map((other) => other[column]))));
export const dot = (a, b) => Array.from(a).reduce((sum, value, index) => sum + value * b[index], 0);
export const transposed = (a) => a[0].map((_, column) => a.map((row) => row[column]));

// Returns e^{x_i} / Σ e^{x_j}; a hidden entry (-Infinity) gets 0, and a row without any other gets zeros.
export function softmaxOf(row) {
  const largest = Math.max(...row);
  if (largest === -Infinity) return row.map(() => 0);
  const exponentials = row.map((value) => Math.exp(value - largest));
  const total = exponentials.reduce((sum, value) => sum + value, 0);
  return exponentials.map((value) => value / total);
}

// The six steps of self-attention for words X and one head.
export function attentionSteps({ X, WQ, WK, WV }) {
  const [Q, K, V] = [WQ, WK, WV].map((W) => product(X, W));
  const scores = product(Q, transposed(K));
  const scaled = scores.map((row) => row.map((value) => value / Math.sqrt(K[0].length)));
  const weights = scaled.map(softmaxOf);
  return { Q, K, V, scores, scaled, weights, Z: product(weights, V) };
}

export function meanOf(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function deviationOf(values) {
  const mean = meanOf(values);
  return Math.sqrt(meanOf(values.map((value) => (value - mean) ** 2)));
}

// Returns a function that draws numbers with mean 0 and variance 1, the same ones for the same seed.
export function normalDraws(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

// Prints a number with at most so many decimals, and a real minus sign.
export function shownNumber(value, decimals = 3) {
  if (value === -Infinity) return "−∞";
  const text = value.toFixed(decimals).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  return (text === "-0" ? "0" : text).replace("-", "−");
}
