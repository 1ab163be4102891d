// Asks the server that gave this page for the lesson of a sentence.

const KEY = "transduce-key"; // the name in session storage under which the translation page keeps the user's key

export async function askedLesson(text, model) {
  return asked("v1/lesson", { method: "POST", body: JSON.stringify({ text, ...(model && { model }) }) });
}

export async function askedModels() {
  return asked("v1/models", {});
}

async function asked(path, options) {
  const key = sessionStorage.getItem(KEY);
  const headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("The server does not answer.");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const needsKey = [401, 403].includes(response.status);
  throw new Error(`${answer.error ?? `The server answered ${response.status}.`}${needsKey ? " Give your key on the page Translate first." : ""}`);
}
