// All that the user has chosen, as one plain object that the address after # spells out.

export const VIEWS = ["model", "head", "neuron", "matrix"];
const COMBINATIONS = ["each", "mean", "max"];
const LARGEST_ZOOM = 64;
const SENTENCE = ["text", "target", "model"];

// What a served page is to look into: it stands before the state and stays.
export function sentenceFrom(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  return Object.fromEntries(SENTENCE.filter((name) => given.get(name)).map((name) => [name, given.get(name)]));
}

// The views that have something to show of a block: several heads, or queries, keys and values.
export function viewsOf(report, stack) {
  const { layers, heads, hasProjections } = report.stacks[stack];
  const hasSomething = { model: layers * heads > 1, neuron: hasProjections };
  return VIEWS.filter((view) => hasSomething[view] !== false);
}

// What is shown unless chosen otherwise; all heads of `stack` are switched on.
export function defaultState(report, stack = report.first) {
  const { layers, heads } = report.stacks[report.first];
  return {
    view: viewsOf(report, report.first)[0],
    stack: report.first,
    layer: layers - 1,
    head: 0,
    heads: range(report.stacks[stack].heads),
    combine: "each",
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

// Whatever an address says, the result is a state that can be shown.
export function settledState(report, wanted) {
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
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (!(name in usual)) continue;
    if (Array.isArray(usual[name]))
      wanted[name] = text === "" ? [] : text.split(".").map(Number).filter(Number.isInteger);
    else if (typeof usual[name] === "boolean") wanted[name] = text === "1";
    else wanted[name] = typeof usual[name] === "number" ? Number(text) : text;
  }
  if (wanted.at && wanted.at.length !== 2) delete wanted.at;
  return settledState(report, wanted);
}

export function createStore(report, location, history) {
  let state = stateFrom(report, location.hash);
  const listeners = [];
  const tell = () => listeners.forEach((listener) => listener(state));
  const write = () => {
    const sentence = new URLSearchParams(sentenceFrom(location.hash)).toString();
    const hash = [sentence, hashOf(report, state)].filter(Boolean).join("&");
    try {
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    } catch {
      // A frame without an address of its own, as in a notebook, has nowhere to keep the state.
    }
  };
  return {
    get: () => state,
    set(patch) {
      state = settledState(report, { ...state, ...patch });
      write();
      tell();
    },
    reread() {
      state = stateFrom(report, location.hash);
      tell();
    },
    subscribe: (listener) => listeners.push(listener),
  };
}
