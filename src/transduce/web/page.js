// The page: translates once typing pauses, gives up on older requests, shows alternatives with their scores.
// No framework and no network but this server's own API.

const PAUSE = 300; // milliseconds without a key press
const element = (id) => document.getElementById(id);
const text = element("text");
const look = element("look");
const KEY = "transduce-key"; // where a tab, and those it opens, keep the key
let models = [];
let limit = Infinity;
let running = null; // the AbortController of the request under way
let timer = 0;
let shown = null; // what the visible translation is of

function headers() {
  const key = element("key").value.trim();
  return { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
}

function say(message, isFault = false) {
  element("status").textContent = message;
  element("status").classList.toggle("fault", isFault);
}

function request() {
  const target = element("target").value;
  return {
    text: text.value,
    ...(element("source").value && { source: element("source").value }),
    ...(target && { target }),
    alternatives: Number(element("count").value),
  };
}

// Quotes for a POSIX shell: everything inside single quotes, which end and begin again around one of their own.
const quoted = (value) => `'${value.replaceAll("'", "'\\''")}'`;

function showCommand() {
  const address = new URL("v1/translate", document.baseURI).href;
  const key = element("key-form").hidden ? "" : ' -H "Authorization: Bearer $KEY"';
  element("curl").textContent =
    `curl ${quoted(address)} -H 'Content-Type: application/json'${key} \\\n  -d ${quoted(JSON.stringify(request()))}`;
}

function showUsed() {
  const count = [...text.value].length;
  element("used").textContent = `${count.toLocaleString()} of ${limit.toLocaleString()} characters`;
  element("used").classList.toggle("fault", count > limit);
  return count <= limit;
}

function clear() {
  shown = null;
  element("best").textContent = "";
  element("others").hidden = true;
  element("copy").disabled = true;
  look.removeAttribute("href");
  look.setAttribute("aria-disabled", "true");
}

function show(answer, asked) {
  const [translation] = answer.translations;
  if (translation.refusal) {
    clear();
    say(`Not translated: ${translation.refusal}.`, true);
    return;
  }
  shown = { text: asked.text, target: translation.text, model: answer.model };
  element("best").textContent = translation.text;
  element("alternatives").replaceChildren(
    ...translation.alternatives.map((alternative) => {
      const item = document.createElement("li");
      const score = document.createElement("span");
      score.className = "score";
      score.textContent = alternative.score.toFixed(3);
      const output = document.createElement("bdi");
      output.textContent = alternative.text;
      item.append(score, output);
      return item;
    }),
  );
  element("others").hidden = translation.alternatives.length < 2;
  element("copy").disabled = false;
  look.href = `attention#${new URLSearchParams(shown)}`; // what follows # stays in the browser: no log holds it
  look.removeAttribute("aria-disabled");
  const lost = translation.missing.length ? ` It has lost ${translation.missing.join(", ")}.` : "";
  say(`${answer.model}.${lost}`, Boolean(lost));
}

async function translate() {
  running?.abort();
  if (!text.value.trim()) {
    clear();
    say("");
    return;
  }
  if (!showUsed()) {
    say("The text is too long.", true);
    return;
  }
  const own = (running = new AbortController());
  const asked = request();
  element("best").classList.add("stale");
  say("…");
  try {
    const response = await fetch("v1/translate", {
      method: "POST",
      headers: headers(),
      body: JSON.stringify(asked),
      signal: own.signal,
    });
    const answer = await response.json();
    if (response.ok) show(answer, asked);
    else {
      clear();
      say(answer.error, true);
    }
  } catch (fault) {
    if (fault.name === "AbortError") return;
    clear();
    say("The server does not answer.", true);
  }
  if (running === own) {
    running = null;
    element("best").classList.remove("stale");
  }
}

function soon() {
  clearTimeout(timer);
  running?.abort();
  showUsed();
  showCommand();
  timer = setTimeout(translate, PAUSE);
}

async function copy(button, value) {
  if (navigator.clipboard) await navigator.clipboard.writeText(value);
  else {
    // Browsers give the clipboard to HTTPS and to this machine alone; elsewhere the old way still works.
    const holder = document.createElement("textarea");
    holder.value = value;
    document.body.append(holder);
    holder.select();
    document.execCommand("copy");
    holder.remove();
    button.focus();
  }
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = label), 1200);
}

function offer(select, options, chosen) {
  select.replaceChildren(...options.map(([value, name]) => new Option(name, value, false, value === chosen)));
}

async function begin() {
  const [settings, languages] = await Promise.all(
    ["frontend/settings", "languages"].map(async (path) => (await fetch(path)).json()),
  );
  limit = settings.charLimit;
  element("key-form").hidden = !settings.keyRequired;
  models = languages.filter((language) => language.targets.length);
  offer(element("source"), [["auto", "any language"], ...models.map((own) => [own.code, own.name])], settings.language.source.code);
  const targets = new Map(languages.filter((own) => models.some((from) => from.targets.includes(own.code))).map((own) => [own.code, own.name]));
  offer(element("target"), [...targets], settings.language.target.code);
  showUsed();
  showCommand();
  if (text.value) soon(); // a browser may have kept what was typed before a reload
}

text.addEventListener("input", soon);
element("key").value = sessionStorage.getItem(KEY) ?? "";
element("key").addEventListener("input", () => {
  sessionStorage.setItem(KEY, element("key").value.trim());
  soon();
});
element("key-form").addEventListener("submit", (event) => event.preventDefault());
for (const id of ["source", "target", "count"]) element(id).addEventListener("change", soon);
element("copy").addEventListener("click", (event) => copy(event.currentTarget, element("best").textContent));
element("copy-curl").addEventListener("click", (event) => copy(event.currentTarget, element("curl").textContent));
begin().catch(() => say("The server does not answer.", true));
