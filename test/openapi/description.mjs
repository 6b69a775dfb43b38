/** docs/openapi.yaml, and what an answer has that it does not say. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { parse } from "yaml";

const FILE = new URL("../../docs/openapi.yaml", import.meta.url);

/** Headers that are HTTP's own: they tell of the message and its connection, not of the interface. */
const OF_HTTP = new Set(["connection", "content-length", "content-type", "date", "keep-alive", "transfer-encoding"]);

/**
 * One answer and the request that it is for. `method` is `null` when the request was no HTTP; `headers` are names and
 * values in turn as they came; `body` is its bytes as latin1, `null` when it is too long to look at.
 * @typedef {{ method: string | null, target: string, status: number, headers: readonly string[], body: string | null }} Answered
 */

/** The interface as the description has it. */
export class Description {
  /** The whole document. */
  document;
  #ajv;
  #compiled = new Map();

  /** `document` is the file's, unless a test has another. */
  constructor(document = parse(readFileSync(FILE, "utf8"))) {
    this.document = document;
    this.#ajv = new Ajv2020({ allErrors: true, strict: false });
    addFormats.default(this.#ajv);
    this.#ajv.addSchema({ $id: "https://streamdir/openapi", ...document });
  }

  /** The operation that answers, by method and path; `null` when there is none. */
  operationOf(method, target) {
    const operations = this.#operationsAt(target.replace(/^https?:\/\/[^/]*/, "").split("?", 1)[0] ?? "");
    const found = method === null ? undefined : operations?.[method.toLowerCase()];
    // What answers GET answers HEAD.
    return found ?? (method === "HEAD" ? (operations?.get ?? null) : null);
  }

  /** A path by itself comes before a template that fits, and a longer one of these before a shorter. */
  #operationsAt(path) {
    if (Object.hasOwn(this.document.paths, path)) return this.document.paths[path];
    const templates = Object.entries(this.document.paths).filter(([template]) => template.includes("{"));
    for (const [template, operations] of templates.sort(([one], [other]) => other.length - one.length)) {
      const [before] = template.split("{");
      // The prefix by itself is no stream's name.
      if (path === before && template.endsWith("{name}")) return this.document.paths["/"];
      if (path.startsWith(before)) return operations;
    }
    return undefined;
  }

  /**
   * What is not as described; empty when all is.
   * @param {Answered} answered
   * @returns {string[]}
   */
  faultsOf({ method, target, status, headers, body }) {
    const operation = this.operationOf(method, target);
    const response = this.#responseOf(operation, status);
    if (response === null) return [`the status ${status} is not described`];
    const has = byName(headers);
    const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
    return [...this.#faultsOfHeaders(response, has), ...this.#faultsOfContent(response, { has, body, hasBody })];
  }

  /** A path or a method that is not described can only be refused, as any request can. */
  #responseOf(operation, status) {
    const responses = operation?.responses ?? { default: { $ref: "#/components/responses/AnyProblem" } };
    const response = responses[String(status)] ?? responses.default ?? null;
    return response === null ? null : this.#resolve(response);
  }

  #resolve(node) {
    if (node?.$ref === undefined) return node;
    return node.$ref
      .slice(2)
      .split("/")
      .reduce((at, key) => at[key], this.document);
  }

  #faultsOfHeaders(response, has) {
    const onAll = Object.entries(this.document["x-on-every-answer"]).map(([name, header]) => [name, { required: true, ...header }]);
    const own = Object.entries(response.headers ?? {}).map(([name, header]) => [name, this.#resolve(header)]);
    const described = new Map([...onAll, ...own].map(([name, header]) => [name.toLowerCase(), header]));
    const unknown = [...has.keys()].filter((name) => !described.has(name) && !OF_HTTP.has(name));
    const faults = [...described].flatMap(([name, header]) => this.#faultsOfHeader(name, header, has.get(name)));
    return [...unknown.map((name) => `the header ${name} is not described`), ...faults];
  }

  #faultsOfHeader(name, { required = false, schema }, value) {
    if (value === undefined) return required ? [`the header ${name} is missing`] : [];
    const isNumber = this.#resolve(schema).type === "integer" && /^\d+$/.test(value);
    return this.#faultsOfValue(`the header ${name}`, schema, isNumber ? Number(value) : value);
  }

  #faultsOfContent(response, { has, body, hasBody }) {
    if (!hasBody) return [];
    const type = has.get("content-type");
    if (type === undefined) return response.content === undefined && (body ?? "") === "" ? [] : ["the Content-Type is missing"];
    const essence = type.split(";", 1)[0].trim().toLowerCase();
    const media = response.content?.[essence] ?? response.content?.["*/*"];
    if (media === undefined) return [`the Content-Type ${type} is not described`];
    return body === null || media.schema === undefined ? [] : this.#faultsOfBody(essence, media.schema, body);
  }

  #faultsOfBody(essence, schema, body) {
    const text = Buffer.from(body, "latin1").toString();
    if (essence === "text/event-stream" && schema.contentSchema !== undefined) {
      return jsonEvents(text).flatMap(({ name, data }) => this.#faultsOfValue(`a ${name} event`, schema.contentSchema, parsed(data)));
    }
    return this.#faultsOfValue("the body", schema, /[/+]json$/.test(essence) && schema.const !== "" ? parsed(text) : text);
  }

  #faultsOfValue(what, schema, value) {
    let validate = this.#compiled.get(schema);
    if (validate === undefined) {
      validate = this.#ajv.compile(absolute(schema));
      this.#compiled.set(schema, validate);
    }
    if (validate(value)) return [];
    return validate.errors.map(({ instancePath, message }) => `${what}${instancePath} ${message}: ${JSON.stringify(value)}`);
  }
}

/** The schema with references that mean the document, wherever it is compiled. */
function absolute(schema) {
  return JSON.parse(JSON.stringify(schema), (key, value) => (key === "$ref" ? `https://streamdir/openapi${value}` : value));
}

/** `undefined`, which no schema takes, for what is no JSON. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the only thing that JSON.parse throws for
  }
}

/** The events that are there whole and have JSON: all but `data`, and what is no event but a field or a comment alone. */
function jsonEvents(text) {
  const blocks = text.split("\n\n").slice(0, -1);
  return blocks.map((block) => eventOf(block.split("\n"))).filter(({ name }) => name !== undefined && name !== "data");
}

function eventOf(lines) {
  const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5));
  return { name: lines.find((line) => line.startsWith("event: "))?.slice(7), data: data.join("\n") };
}

/** One name may come more than once: then its values are one list. */
function byName(headers) {
  const values = new Map();
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at].toLowerCase();
    values.set(name, values.has(name) ? `${values.get(name)}, ${headers[at + 1]}` : headers[at + 1]);
  }
  return values;
}
