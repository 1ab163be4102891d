// What the user has chosen, as one plain object; the address after # holds it.

export const VIEWS = ["head", "model", "neuron", "matrix"];
const COMBINATIONS = ["each", "mean", "max"];
const SCALES = ["linear", "log", "row"];
const LONGEST_LINEAR = 48; // tokens: with more of them, most weights are too small to be seen on a linear scale
const STEPS_OF_HISTORY = ["view", "stack", "layer"]; // choices that the Back button undoes one by one
const LARGEST_ZOOM = 64;
const REQUEST = ["text", "target", "model", "sentences"];
const OF_TOKENS = ["pins", "at", "step"]; // parts of the state that mean other tokens in another sentence

function parametersOf(hash) {
  return new URLSearchParams(hash.replace(/^#/, ""));
}

// Returns which text a served page shows: the text, its model and translation, and its sentences with their token ids.
export function requestFrom(hash) {
  const given = parametersOf(hash);
  const asked = Object.fromEntries(REQUEST.filter((name) => given.get(name)).map((name) => [name, given.get(name)]));
  if (asked.sentences) asked.sentences = sentencesFrom(asked.sentences);
  return asked;
}

// Reads what `attentionAddress` in page.js writes: start.end.id.id… for each sentence, with _ between sentences.
function sentencesFrom(written) {
  const sentences = written.split("_").map((sentence) => sentence.split(".").map(Number));
  const isWhole = (numbers) => numbers.length > 2 && numbers.every((number) => Number.isInteger(number) && number >= 0);
  return sentences.every(isWhole) ? sentences.map(([start, end, ...tokens]) => ({ start, end, tokens })) : undefined;
}

// Returns the number of the sentence that an address names, counted from 1.
export function sentenceNumber(hash) {
  return clamp(parametersOf(hash).get("sentence") ?? 1, 1, Infinity);
}

// Returns the address of another sentence in the same view.
export function addressOfSentence(hash, number) {
  const parameters = parametersOf(hash);
  for (const name of OF_TOKENS) parameters.delete(name);
  parameters.set("sentence", number);
  return parameters.toString();
}

// The views that have something to show of a block: several heads, or queries, keys and values.
export function viewsOf(report, stack) {
  const { layers, heads, hasProjections } = report.stacks[stack];
  const hasSomething = { model: layers * heads > 1, neuron: hasProjections };
  return VIEWS.filter((view) => hasSomething[view] !== false);
}

// What is shown unless chosen otherwise; all heads of `stack` are switched on.
export function defaultState(report, stack = report.first) {
  const { layers, queries, keys } = report.stacks[report.first];
  return {
    view: viewsOf(report, report.first)[0],
    stack: report.first,
    layer: layers - 1,
    head: 0,
    heads: range(report.stacks[stack].heads),
    combine: "each",
    read: -1, // the head of the read-out, or -1 for all that are switched on
    scale: Math.max(queries.length, keys.length) > LONGEST_LINEAR ? "log" : "linear",
    threshold: 0,
    words: false,
    specials: false,
    side: "query",
    pins: [],
    at: [0, 0],
    zoom: 0,
    step: report.steps,
  };
}

export function range(count) {
  return Array.from({ length: count }, (_, index) => index);
}

// Returns a state that can be shown, for any address.
export function validState(report, wanted) {
  const stack = Object.hasOwn(report.stacks, wanted.stack) ? wanted.stack : report.first;
  const base = { ...defaultState(report, stack), ...wanted };
  const { layers, heads, queries, keys } = report.stacks[stack];
  const side = base.side === "key" ? "key" : "query";
  const tokens = side === "key" ? keys.length : queries.length;
  const chosen = [...new Set(base.heads)].filter((head) => head >= 0 && head < heads).sort((a, b) => a - b);
  return {
    view: viewsOf(report, stack).includes(base.view) ? base.view : viewsOf(report, stack)[0],
    stack,
    side,
    combine: COMBINATIONS.includes(base.combine) ? base.combine : "each",
    read: chosen.length > 1 && chosen.includes(base.read) ? base.read : -1,
    scale: SCALES.includes(base.scale) ? base.scale : defaultState(report).scale,
    layer: clamp(base.layer, 0, layers - 1),
    head: clamp(base.head, 0, heads - 1),
    heads: chosen,
    threshold: clamp(base.threshold, 0, 100),
    words: Boolean(base.words),
    specials: Boolean(base.specials),
    pins: [...new Set(base.pins)].filter((token) => token >= 0 && token < tokens).sort((a, b) => a - b),
    at: [clamp(base.at[0], 0, queries.length - 1), clamp(base.at[1], 0, keys.length - 1)],
    zoom: clamp(base.zoom, 0, LARGEST_ZOOM),
    step: clamp(base.step, 1, report.steps),
  };
}

function clamp(value, low, high) {
  const whole = Math.round(Number(value));
  return Number.isFinite(whole) ? Math.min(Math.max(whole, low), high) : low;
}

export function hashOf(report, state) {
  const usual = defaultState(report, state.stack);
  const parts = Object.entries(state)
    .filter(([name, value]) => String(value) !== String(usual[name]))
    .map(([name, value]) => `${name}=${Array.isArray(value) ? value.join(".") : value === true ? 1 : value}`);
  return parts.join("&");
}

export function stateFrom(report, hash) {
  const wanted = {};
  const usual = defaultState(report);
  for (const [name, text] of parametersOf(hash)) {
    if (!(name in usual)) continue;
    if (Array.isArray(usual[name]))
      wanted[name] = text === "" ? [] : text.split(".").map(Number).filter(Number.isInteger);
    else if (typeof usual[name] === "boolean") wanted[name] = text === "1";
    else wanted[name] = typeof usual[name] === "number" ? Number(text) : text;
  }
  if (wanted.at && wanted.at.length !== 2) delete wanted.at;
  return validState(report, wanted);
}

export function createStore(report, location, history) {
  let state = stateFrom(report, location.hash);
  const listeners = [];
  const tell = () => listeners.forEach((listener) => listener(state));
  const write = ({ isStep }) => {
    const kept = [...parametersOf(location.hash)].filter(([name]) => [...REQUEST, "sentence"].includes(name));
    const hash = [new URLSearchParams(kept).toString(), hashOf(report, state)].filter(Boolean).join("&");
    try {
      const address = hash ? `#${hash}` : location.pathname + location.search;
      if (isStep) history.pushState(null, "", address);
      else history.replaceState(null, "", address);
    } catch {
      // A frame in a notebook has no address that could hold the state.
    }
  };
  return {
    get: () => state,
    set(patch) {
      const before = state;
      state = validState(report, { ...state, ...patch });
      write({ isStep: STEPS_OF_HISTORY.some((name) => state[name] !== before[name]) });
      tell();
    },
    reread() {
      state = stateFrom(report, location.hash);
      tell();
    },
    subscribe: (listener) => listeners.push(listener),
  };
}
