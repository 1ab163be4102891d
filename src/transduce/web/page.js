// The translation page: translates when typing pauses, cancels older requests, shows alternatives with their scores,
// and translates files. It uses no framework and calls nothing but this server's API.

const PAUSE = 300; // milliseconds without a key press
const MOST_REASONS = 5; // shown of the passages of a file that stay untranslated
const LONGEST_WAIT = 30; // seconds between two attempts while the server is busy
const element = (id) => document.getElementById(id);
const text = element("text");
const look = element("look");
const KEY = "transduce-key"; // its name in session storage, where the attention page finds it
let limit = Infinity;
let running = null; // the AbortController of the current request
let timer = 0;
let pairs = new Set(); // of languages that are translated, such as "en de"

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

// Marks the translation on the page as that of an earlier text, or of the current one.
function markStale(isStale) {
  const isEmpty = !element("best").textContent;
  element("best").classList.toggle("stale", isStale);
  element("stale").hidden = !isStale || isEmpty;
}

function clear() {
  element("best").textContent = "";
  markStale(false);
  element("others").hidden = true;
  element("copy").disabled = true;
  stopLooking();
}

function stopLooking() {
  look.removeAttribute("href");
  look.setAttribute("aria-disabled", "true");
}

// The address holds each sentence's span and the token ids of its output, so that attention is shown of exactly this
// translation. The part after # is not sent to the server or its log.
function attentionAddress(source, { sentences }, model) {
  const written = sentences.map(({ start, end, tokens }) => [start, end, ...tokens].join(".")).join("_");
  return `attention#${new URLSearchParams({ text: source, model, sentences: written })}`;
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
  stopLooking(); // no model has the attention of two in turn
  if (translation.alternatives[0].sentences.length && !translation.pivot) {
    look.href = attentionAddress(asked.text, translation.alternatives[0], answer.model);
    look.removeAttribute("aria-disabled");
  }
  const between = translation.pivot ? ` Between them: “${translation.pivot.text}”` : "";
  const lost = translation.missing.length ? ` Missing in the translation: ${translation.missing.join(", ")}.` : "";
  showStatus(`${answer.model}.${between}${lost}`, Boolean(lost));
}

async function translate(attempt = 1) {
  running?.abort();
  clearTimeout(timer);
  if (!text.value.trim()) {
    clear();
    showStatus("");
    return;
  }
  markStale(true);
  if (!showUsed()) {
    const [count, most] = [[...text.value].length, limit].map((number) => number.toLocaleString());
    showStatus(`The text is too long: ${count} characters of at most ${most}. Shorten it, or send it in parts.`, true);
    return;
  }
  const own = (running = new AbortController());
  const asked = request();
  showStatus("…");
  try {
    const response = await fetch("v1/translate", {
      method: "POST",
      headers: headers(),
      body: JSON.stringify(asked),
      signal: own.signal,
    });
    const answer = await response.json().catch(() => ({}));
    if (response.ok) {
      show(answer, asked);
      markStale(false);
    } else if ([429, 503].includes(response.status)) tryAgain(response, attempt);
    else showStatus(answer.error ?? `The server answered ${response.status}.`, true);
  } catch (fault) {
    if (fault.name === "AbortError") return;
    showStatus("The server does not answer. Change the text to try again.", true);
  }
  if (running === own) running = null;
}

// Waits as long as the busy server asks for, longer after each attempt, and translates again.
function tryAgain(response, attempt) {
  const asked = Number(response.headers.get("Retry-After")) || 1;
  const seconds = Math.min(Math.max(asked, 2 ** (attempt - 1)), LONGEST_WAIT);
  showStatus(`The server is busy. Trying again in ${seconds} s.`, true);
  timer = setTimeout(() => translate(attempt + 1), seconds * 1000);
}

async function translateFile(event) {
  event.preventDefault();
  const [status, link, [file]] = [element("file-status"), element("file-link"), element("file").files];
  const report = (message, isFault) => {
    status.textContent = message;
    status.classList.toggle("fault", isFault);
  };
  link.hidden = true;
  report(`Translating ${file.name} …`, false);
  const body = new FormData();
  body.append("file", file);
  for (const id of ["source", "target"]) body.append(id, element(id).value);
  const { "Content-Type": _, ...own } = headers(); // the browser writes the type of a form, with its boundary
  try {
    const response = await fetch("translate_file", { method: "POST", headers: own, body });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) return report(answer.error ?? `The server answered ${response.status}.`, true);
    const { filled, unsure, kept, left, translatedFileUrl } = answer;
    const counts = `translated: ${filled}${unsure ? ` (${unsure} more likely wrong than right)` : ""}; translated before: ${kept}; left untranslated: ${left.length}`;
    const reasons = left.slice(0, MOST_REASONS).map(({ where, reason }) => `${where}: ${reason}`);
    report([`${file.name}: ${counts}.`, ...reasons, ...(left.length > MOST_REASONS ? ["…"] : [])].join("\n"), left.length > 0);
    link.href = `download_file/${translatedFileUrl.split("/").pop()}`; // the same server, under this page's address
    link.hidden = false;
  } catch {
    report("The server does not answer.", true);
  }
}

function scheduleTranslation() {
  clearTimeout(timer);
  running?.abort();
  showUsed();
  showCommand();
  timer = setTimeout(() => translate(), PAUSE);
}

// The languages can be swapped where the server translates back.
function chooseLanguages() {
  element("swap").disabled = !pairs.has(`${element("target").value} ${element("source").value}`);
  scheduleTranslation();
}

// Swaps the languages, and translates the translation back.
function swap() {
  const [source, target, best] = [element("source"), element("target"), element("best")];
  [source.value, target.value] = [target.value, source.value];
  if (best.textContent && !best.classList.contains("stale")) text.value = best.textContent;
  chooseLanguages();
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
  element("files").hidden = !settings.filesTranslation;
  element("file").accept = settings.supportedFilesFormat.join(",");
  element("kinds").textContent =
    `${settings.supportedFilesFormat.join(", ")}. Only missing translations are filled in; the rest stays as it is.`;
  const option = ({ code, name }) => [code, name];
  const sources = languages.filter((language) => language.targets.length);
  const targets = languages.filter(({ code }) => sources.some((source) => source.targets.includes(code)));
  if (!sources.length) return showStatus("No model of this server translates. See its API.", true);
  fillSelect(element("source"), [["auto", "detect language"], ...sources.map(option)], settings.language.source.code);
  fillSelect(element("target"), targets.map(option), settings.language.target.code);
  pairs = new Set(sources.flatMap(({ code, targets: own }) => own.map((target) => `${code} ${target}`)));
  chooseLanguages(); // a browser may keep the text across a reload
}

text.addEventListener("input", scheduleTranslation);
element("file-form").addEventListener("submit", translateFile);
element("key").value = sessionStorage.getItem(KEY) ?? "";
element("key").addEventListener("input", () => {
  sessionStorage.setItem(KEY, element("key").value.trim());
  scheduleTranslation();
});
element("key-form").addEventListener("submit", (event) => event.preventDefault());
for (const id of ["source", "target", "count"]) element(id).addEventListener("change", chooseLanguages);
element("swap").addEventListener("click", swap);
element("copy").addEventListener("click", (event) => copy(event.currentTarget, element("best").textContent));
element("copy-curl").addEventListener("click", (event) => copy(event.currentTarget, element("curl").textContent));
begin().catch(() => showStatus("The server does not answer.", true));
