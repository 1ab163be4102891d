// Queries, keys and values of one head, and section 3.2.1 computed from them.

import { bytesOf } from "./report.js";

function floatsOf(block) {
  return new Float32Array(bytesOf(block.base64_f32).buffer);
}

// Returns the numbers that the page itself carries as a function of block, layer and head; null if it carries none.
export function carriedNumbers({ blocks }) {
  if (!Object.values(blocks).some((block) => block.numbers)) return null;
  const unpacked = new Map();
  return async (stack, layer, head) => {
    const numbers = blocks[stack].numbers;
    if (!unpacked.has(stack)) {
      const floats = (block) => block && { floats: floatsOf(block), shape: block.shape };
      const parts = ["query", "key", "value", "additive"].map((name) => [name, floats(numbers[name])]);
      unpacked.set(stack, Object.fromEntries(parts));
    }
    const rows = ({ floats, shape: [, heads, count, width] }) => {
      const start = (layer * heads + head) * count * width;
      return Array.from({ length: count }, (_, row) => floats.subarray(start + row * width, start + (row + 1) * width));
    };
    const { query, key, value, additive } = unpacked.get(stack);
    const vector =
      additive &&
      additive.floats.subarray(
        (layer * additive.shape[1] + head) * additive.shape[2],
        (layer * additive.shape[1] + head + 1) * additive.shape[2],
      );
    return {
      scores: numbers.scores,
      scale: numbers.scale,
      query: rows(query),
      key: rows(key),
      value: rows(value),
      additive: vector,
    };
  };
}

// Turns what a server answers for one head (HeadNumbersEntry of the contract) into the same form.
export function headNumbersFrom(entry) {
  const rows = (block) => {
    const floats = floatsOf(block);
    return Array.from({ length: block.shape[0] }, (_, row) =>
      floats.subarray(row * block.shape[1], (row + 1) * block.shape[1]),
    );
  };
  return {
    scores: entry.scores,
    scale: entry.scale,
    query: rows(entry.query),
    key: rows(entry.key),
    value: rows(entry.value),
    additive: entry.additive && floatsOf(entry.additive),
  };
}

// The steps of section 3.2.1 for one query and one key among all.
export function stepsOf(numbers, isVisible, q, k) {
  const terms = (key) =>
    Array.from(numbers.query[q], (value, index) =>
      numbers.additive ? numbers.additive[index] * Math.tanh(value + key[index]) : value * key[index],
    );
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const products = numbers.key.map((key) => sum(terms(key)));
  const visible = numbers.key.map((_, other) => isVisible(q, other));
  const scores = products.map((product) => product * numbers.scale);
  const largest = Math.max(...scores.filter((_, other) => visible[other]));
  const exponentials = scores.map((score, other) => (visible[other] ? Math.exp(score - largest) : 0));
  const total = sum(exponentials);
  const weights = exponentials.map((exponential) => exponential / total);
  const output = Array.from(numbers.value[k], (_, index) =>
    sum(weights.map((weight, other) => weight * numbers.value[other][index])),
  );
  return { terms: terms(numbers.key[k]), products, scores, visible, weights, output };
}
