// The API's documentation: shows openapi.json of this server as tables, and loads nothing from elsewhere.

const make = (name, content = "", ...children) => {
  const made = document.createElement(name);
  made.textContent = content;
  made.append(...children);
  return made;
};

const schemas = {};

function resolved(schema) {
  return schema?.$ref ? schemas[schema.$ref.split("/").pop()] : (schema ?? {});
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
  return schema.enum ? schema.enum.join(" | ") : (schema.type ?? "anything");
}

function fields(schema) {
  const body = resolved(schema);
  const table = make("table", "", make("tr", "", make("th", "field"), make("th", "type"), make("th", "meaning")));
  for (const [name, own] of Object.entries(body.properties ?? {})) {
    const isRequired = body.required?.includes(name);
    table.append(
      make("tr", "", make("td", name + (isRequired ? " *" : "")), make("td", typeOf(own)), make("td", own.description ?? "")),
    );
  }
  return body.properties ? table : make("p", typeOf(schema ?? {}));
}

function operation(path, method, own, languages) {
  const details = make("details", "", make("summary", `${method.toUpperCase()} ${path}: ${own.description ?? own.summary}`));
  const command = commandOf(path, method, languages);
  if (command) {
    const example = make("pre", "", make("code", command));
    example.tabIndex = 0;
    details.append(make("h2", "Example"), example);
  }
  const kinds = Object.keys(own.requestBody?.content ?? {});
  if (kinds.length) details.append(make("h2", `Body: ${kinds.join(", ")}`), fields(own.requestBody.content[kinds[0]].schema));
  for (const [status, answer] of Object.entries(own.responses)) {
    const schema = answer.content?.["application/json"]?.schema;
    if (status === "200") details.append(make("h2", "Answer"), schema ? fields(schema) : make("p", Object.keys(answer.content ?? {}).join(", ")));
    else details.append(make("p", `${status}: ${answer.description}`));
  }
  return details;
}

// Returns a command for each operation that a reader can paste and run. `languages` are those that the server has.
function commandOf(path, method, languages) {
  const unknown = { code: "en", targets: ["de"] }; // a server without a model that translates
  const { code: source, targets } = languages.find((language) => language.targets.length) ?? unknown;
  const [text, target] = ["Good morning!", targets.find((code) => code !== source) ?? targets[0]];
  const bodies = {
    "/translate": { q: text, source, target },
    "/detect": { q: text },
    "/v1/translate": { text, alternatives: 2 },
    "/v1/generate": { prompt: text, tokens: 40 },
    "/v1/likelihood": { pairs: [{ source: text, target: "Guten Morgen!" }] },
    "/v1/attention": { text },
    "/v1/lesson": { text },
    "/v1/attention/page": { text },
    "/v1/lesson": { text },
    "/v1/attention/numbers": { source: [5, 3], target: [5, 3], stack: "cross", layer: 0, head: 0 },
  };
  const address = `curl '${new URL(path.slice(1), document.baseURI).href}'`;
  if (path === "/translate_file") return `${address} -F file=@document.po -F source=${source} -F target=${target}`;
  if (method === "get") return address;
  return bodies[path] && `${address} -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(bodies[path])}'`;
}

const [description, languages] = await Promise.all(
  ["openapi.json", "languages"].map(async (path) => (await fetch(path)).json()),
);
Object.assign(schemas, description.components.schemas);
document.getElementById("description").textContent = description.info.description;
document.getElementById("operations").append(
  ...Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, own]) => operation(path, method, own, languages)),
  ),
);
