// The translation page: translates when typing pauses, cancels older requests, shows alternatives with their scores.
// It uses no framework and calls nothing but this server's API.

const PAUSE = 300; // milliseconds without a key press
const element = (id) => document.getElementById(id);
const text = element("text");
const look = element("look");
const KEY = "transduce-key"; // its name in session storage, where the attention page finds it
let limit = Infinity;
let running = null; // the AbortController of the current request
let timer = 0;

function headers() {
  const key = element("key").value.trim();
  return { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
}

function showStatus(message, isFault = false) {
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

// Quotes a value for a POSIX shell: inside single quotes, with each single quote written as '\''.
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
    showStatus(`Not translated: ${translation.refusal}.`, true);
    return;
  }
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
  const sentence = { text: asked.text, target: translation.text, model: answer.model };
  look.href = `attention#${new URLSearchParams(sentence)}`; // the part after # is not sent to the server or its log
  look.removeAttribute("aria-disabled");
  const lost = translation.missing.length ? ` Missing in the translation: ${translation.missing.join(", ")}.` : "";
  showStatus(`${answer.model}.${lost}`, Boolean(lost));
}

async function translate() {
  running?.abort();
  if (!text.value.trim()) {
    clear();
    showStatus("");
    return;
  }
  if (!showUsed()) {
    showStatus("The text is too long.", true);
    return;
  }
  const own = (running = new AbortController());
  const asked = request();
  element("best").classList.add("stale");
  showStatus("…");
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
      showStatus(answer.error, true);
    }
  } catch (fault) {
    if (fault.name === "AbortError") return;
    clear();
    showStatus("The server does not answer.", true);
  }
  if (running === own) {
    running = null;
    element("best").classList.remove("stale");
  }
}

function scheduleTranslation() {
  clearTimeout(timer);
  running?.abort();
  showUsed();
  showCommand();
  timer = setTimeout(translate, PAUSE);
}

async function copy(button, value) {
  if (navigator.clipboard) await navigator.clipboard.writeText(value);
  else {
    // Browsers offer the clipboard only over HTTPS and on localhost; execCommand works elsewhere.
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

function fillSelect(select, options, chosen) {
  select.replaceChildren(...options.map(([value, name]) => new Option(name, value, false, value === chosen)));
}

async function begin() {
  const [settings, languages] = await Promise.all(
    ["frontend/settings", "languages"].map(async (path) => (await fetch(path)).json()),
  );
  limit = settings.charLimit;
  element("key-form").hidden = !settings.keyRequired;
  const option = ({ code, name }) => [code, name];
  const sources = languages.filter((language) => language.targets.length);
  const targets = languages.filter(({ code }) => sources.some((source) => source.targets.includes(code)));
  fillSelect(element("source"), [["auto", "detect language"], ...sources.map(option)], settings.language.source.code);
  fillSelect(element("target"), targets.map(option), settings.language.target.code);
  showUsed();
  showCommand();
  if (text.value) scheduleTranslation(); // a browser may keep the text across a reload
}

text.addEventListener("input", scheduleTranslation);
element("key").value = sessionStorage.getItem(KEY) ?? "";
element("key").addEventListener("input", () => {
  sessionStorage.setItem(KEY, element("key").value.trim());
  scheduleTranslation();
});
element("key-form").addEventListener("submit", (event) => event.preventDefault());
for (const id of ["source", "target", "count"]) element(id).addEventListener("change", scheduleTranslation);
element("copy").addEventListener("click", (event) => copy(event.currentTarget, element("best").textContent));
element("copy-curl").addEventListener("click", (event) => copy(event.currentTarget, element("curl").textContent));
begin().catch(() => showStatus("The server does not answer.", true));
