// Beam search over a recorded tree of probabilities: what decoding/beam_search.py does, step by step.

export function lengthPenalty(length, alpha) {
  return ((5 + length) / 6) ** alpha;
}

const keyOf = (tokens) => tokens.join(".");

// Returns { steps, finished, best }. A step lists its candidates, best first; each says what became of it: "alive",
// "finished" or "dropped". `finished` are the finished hypotheses after all steps, best score first.
export function beamSearch({ nodes, end, limit }, { beam, alpha }) {
  let alive = [{ tokens: [], logP: 0 }];
  let finished = [];
  const steps = [];
  while (true) {
    const candidates = extensions(nodes, alive).slice(0, beam > 1 ? 2 * beam : 1);
    const length = steps.length + 1;
    const going = candidates.filter(({ token }) => token !== end).slice(0, beam);
    const ended = candidates
      .filter(({ token }) => token === end)
      .map((one) => ({ ...one, length, score: one.logP / lengthPenalty(length, alpha) }));
    finished = [...finished, ...ended].sort((a, b) => b.score - a.score).slice(0, beam);
    const fate = (one) => (one.token === end ? "finished" : going.includes(one) ? "alive" : "dropped");
    steps.push(candidates.map((one) => ({ ...one, fate: fate(one) })));
    alive = going;
    const bound = alive.length ? alive[0].logP / lengthPenalty(limit, alpha) : -Infinity;
    if (!alive.length || length >= limit || (finished.length && finished[0].score > bound)) {
      const left = alive.map((one) => ({ ...one, length, score: one.logP / lengthPenalty(length, alpha) }));
      return { steps, finished, best: finished[0] ?? left[0], bound };
    }
  }
}

// Every extension of the living by a recorded token; of equals, the lower beam first and then the lower token.
function extensions(nodes, alive) {
  const found = alive.flatMap(({ tokens, logP }, from) => {
    const next = nodes[keyOf(tokens)];
    if (!next) throw new Error(`The record has no prefix ${keyOf(tokens)}.`);
    return next.map(([token, own]) => ({ token, own, from, tokens: [...tokens, token], logP: logP + own }));
  });
  return found.sort((a, b) => b.logP - a.logP || a.from - b.from || a.token - b.token);
}

// Returns the text of a hypothesis as the tokenizer would join it: ▁ begins a word.
export function textOf({ names, end }, tokens) {
  const pieces = tokens.filter((token) => token !== end).map((token) => names[token]);
  return pieces.join("").replaceAll("▁", " ").trim();
}
