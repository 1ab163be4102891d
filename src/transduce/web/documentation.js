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

function operation(path, method, own) {
  const details = make("details", "", make("summary", `${method.toUpperCase()} ${path}: ${own.description ?? own.summary}`));
  const kinds = Object.keys(own.requestBody?.content ?? {});
  if (kinds.length) details.append(make("h2", `Body: ${kinds.join(", ")}`), fields(own.requestBody.content[kinds[0]].schema));
  for (const [status, answer] of Object.entries(own.responses)) {
    const schema = answer.content?.["application/json"]?.schema;
    if (status === "200") details.append(make("h2", "Answer"), schema ? fields(schema) : make("p", Object.keys(answer.content ?? {}).join(", ")));
    else details.append(make("p", `${status}: ${answer.description}`));
  }
  return details;
}

const description = await (await fetch("openapi.json")).json();
Object.assign(schemas, description.components.schemas);
document.getElementById("description").textContent = description.info.description;
document.getElementById("operations").append(
  ...Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, own]) => operation(path, method, own)),
  ),
);
