import { Random } from "../helpers/random.js";
import type { Expected, Model, ModelAppend, ModelStream, Stamp } from "./stream-model.js";
import { write, type Wire, type WrittenRequest } from "./wire.js";

/** A request, and what is to come of it. */
export interface FuzzRequest {
  readonly method: string;
  readonly written: WrittenRequest;
  /** Tells what is to be answered, and does in the model what the server does; `null` where several answers are right. */
  readonly expect: (model: Model) => Expected | null;
  /** Whether the connection ends with the answer: a request that is refused while its body comes may end it. */
  readonly closes: "never" | "perhaps" | "always";
  /** What has to be the same each time the same is read: its key in {@link ModelStream.etags}. */
  readonly etagKey?: (model: Model) => { readonly stream: ModelStream; readonly key: string } | null;
  /** The stream that the answer's offset is one of. */
  readonly name?: string;
}

export const PREFIX = "/v1/stream/";
const TYPES = ["text/plain", "application/octet-stream", "application/json"] as const;
const NO_BYTES = Buffer.alloc(0);

/** A well-formed request: most of them make sense for what the model holds. */
export function wellFormed(random: Random, model: Model): FuzzRequest {
  const make = random.weighted<(random: Random, model: Model, name: string) => FuzzRequest>([
    [14, appendRequest],
    [6, createRequest],
    [9, readRequest],
    [3, headRequest],
    [1, deleteRequest],
    [2, otherRequest],
  ]);
  return make(random, model, random.pick(model.names));
}

/** The path of a stream, in one of its spellings. */
function pathOf(random: Random, name: string): string {
  if (random.chance(0.8)) return PREFIX + name;
  const at = random.integer(0, name.length - 1);
  return `${PREFIX}${name.slice(0, at)}%${name.charCodeAt(at).toString(16)}${name.slice(at + 1)}`;
}

/** A body, and what a JSON stream makes of it. */
function bodyFor(random: Random, contentType: string | null): Pick<ModelAppend, "body" | "messages"> {
  if (contentType === "application/json") {
    if (random.chance(0.06)) return { body: Buffer.from(random.pick(['{"a":', "[1,]", "nothing", "1 2"])), messages: null };
    const values = Array.from({ length: random.integer(0, 4) }, () =>
      random.pick<unknown>([random.integer(0, 1e6), "a\r\nb", { a: [1, { b: null }] }, [], true, "x".repeat(random.integer(0, 200))]),
    );
    const [only] = values;
    if (values.length === 1 && !Array.isArray(only)) return { body: Buffer.from(` ${JSON.stringify(only)}\n`), messages: values };
    return { body: Buffer.from(JSON.stringify(values, null, random.pick([0, 2]))), messages: values };
  }
  // Some of it looks like HTTP: a server that loses count takes it for that.
  const texts = [
    "x",
    "GET /v1/stream/smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
    "0\r\n\r\n",
    "\r\n",
    "\x00\xff",
    "y".repeat(random.integer(1, 2000)),
  ];
  const body = Array.from({ length: random.integer(1, 4) }, () => random.pick(texts)).join("");
  return { body: Buffer.from(body, "latin1"), messages: null };
}

function stampFor(random: Random): Stamp | null {
  if (random.chance(0.75)) return null;
  return {
    id: random.pick(["p", "q"]),
    epoch: random.weighted([
      [8, 0],
      [1, 1],
    ]),
    seq: random.weighted([
      [5, 0],
      [4, 1],
      [3, 2],
      [1, 9],
    ]),
  };
}

/** The headers of an append. */
function headersOf({ contentType, closes, producer, seq }: ModelAppend): [string, string][] {
  const headers: [string, string][] = [];
  if (contentType !== null) headers.push(["Content-Type", contentType]);
  if (closes) headers.push(["Stream-Closed", "true"]);
  if (seq !== null) headers.push(["Stream-Seq", seq]);
  if (producer !== null)
    headers.push(["Producer-Id", producer.id], ["Producer-Epoch", String(producer.epoch)], ["Producer-Seq", String(producer.seq)]);
  return headers;
}

function appendRequest(random: Random, model: Model, name: string): FuzzRequest {
  const there = model.get(name);
  const contentType = random.weighted<string | null>([
    [20, there?.contentType ?? "text/plain"],
    [1, random.pick(TYPES)],
    [1, null],
  ]);
  const closes = random.chance(0.04);
  const isEmpty = random.chance(closes ? 0.5 : 0.05);
  const append: ModelAppend = {
    contentType,
    ...(isEmpty ? { body: NO_BYTES, messages: [] } : bodyFor(random, there?.contentType ?? contentType)),
    closes,
    producer: stampFor(random),
    seq: random.chance(0.9) ? null : String(random.integer(100, 999)),
  };
  return changing(random, "POST", name, append, (now) => now.append(name, append));
}

function createRequest(random: Random, model: Model, name: string): FuzzRequest {
  const there = model.get(name);
  const contentType = random.chance(0.7) ? (there?.contentType ?? random.pick(TYPES)) : random.pick<string | null>([...TYPES, null]);
  const content = random.chance(0.5) ? { body: NO_BYTES, messages: [] } : bodyFor(random, contentType);
  const create: ModelAppend = {
    contentType,
    ...content,
    closes: random.chance(0.1) !== (there?.closed ?? false),
    producer: null,
    seq: null,
  };
  return changing(random, "PUT", name, create, (now) => now.create(name, create));
}

function changing(random: Random, method: string, name: string, append: ModelAppend, expect: (model: Model) => Expected): FuzzRequest {
  const hasBody = append.body.length > 0 || random.chance(0.3);
  const continues = append.body.length > 0 && random.chance(0.08);
  const headers = headersOf(append);
  if (continues) headers.push(["Expect", "100-continue"]);
  const wire: Wire = { method, target: pathOf(random, name), headers, ...(hasBody ? { body: append.body } : {}) };
  // What is refused by its head may be refused before its body is there, which ends the connection.
  return { method, written: write(random, wire), expect, closes: hasBody ? "perhaps" : "never", name };
}

/** A place to read from: its query, and what the model says of it. */
interface Place {
  readonly query: string;
  readonly position: (stream: ModelStream) => number | null;
}

function placeIn(random: Random, stream: ModelStream | undefined): Place {
  const known = [...(stream?.tokens ?? [])];
  return random.weighted<Place>([
    [4, { query: "", position: () => 0 }],
    [3, { query: "offset=-1", position: () => 0 }],
    [2, { query: "offset=now", position: ({ tail }) => tail }],
    [known.length > 0 ? 6 : 0, placeAt(random, stream, known)],
  ]);
}

function placeAt(random: Random, stream: ModelStream | undefined, known: readonly (readonly [number, string])[]): Place {
  const [position, token] = known.length > 0 ? random.pick(known) : [0, ""];
  // Of a stream that has been deleted meanwhile: whatever is said of that, it is not what the token was for.
  return { query: `offset=${token}`, position: (now) => (now === stream ? position : null) };
}

function readRequest(random: Random, model: Model, name: string): FuzzRequest {
  const there = model.get(name);
  if (random.chance(0.06)) return refusedRead(random, name);
  const { query, position } = placeIn(random, there);
  const isLive = query !== "" && random.chance(0.15);
  const isWaiting = query === "offset=now";
  const kept = there === undefined || isWaiting || random.chance(0.7) ? undefined : random.pick([...there.etags, ["", ""]])[1];
  const headers: [string, string][] = kept ? [["If-None-Match", random.pick([kept, `W/${kept}`, `"other", ${kept}`])]] : [];
  const target = `${pathOf(random, name)}${query === "" && !isLive ? "" : `?${query}${isLive ? "&live=long-poll" : ""}`}`;
  const keyOf = (stream: ModelStream, from: number): string => `${from} to ${stream.tail}${stream.closed ? ", closed" : ""}`;
  const expect = (now: Model): Expected | null => {
    const stream = now.get(name);
    if (stream === undefined) return { status: 404, code: "stream-not-found" };
    const from = position(stream);
    if (from === null) return null;
    const read = stream.read(from);
    if (isLive && from === stream.tail) return { status: 204, position: stream.tail, closed: stream.closed };
    if (kept && stream.etags.get(keyOf(stream, from)) === kept) return { status: 304, position: stream.tail, closed: stream.closed };
    return read;
  };
  const etagKey: FuzzRequest["etagKey"] = (now) => {
    const stream = now.get(name);
    const from = stream === undefined ? null : position(stream);
    return stream === undefined || from === null || isWaiting ? null : { stream, key: keyOf(stream, from) };
  };
  return { method: "GET", written: write(random, { method: "GET", target, headers }), expect, closes: "never", name, etagKey };
}

function refusedRead(random: Random, name: string): FuzzRequest {
  const [query, code] = random.pick([
    ["offset=", "invalid-offset"],
    ["offset=nowhere", "invalid-offset"],
    ["offset=-1&offset=-1", "invalid-query"],
    ["live=sse", "invalid-offset"],
    ["live=x&offset=-1", "invalid-query"],
  ] as const);
  return {
    method: "GET",
    written: write(random, { method: "GET", target: `${PREFIX}${name}?${query}` }),
    expect: () => ({ status: 400, code }),
    closes: "never",
  };
}

function headRequest(random: Random, _model: Model, name: string): FuzzRequest {
  const expect = (now: Model): Expected => {
    const stream = now.get(name);
    if (stream === undefined) return { status: 404 };
    return { status: 200, position: stream.tail, closed: stream.closed, contentType: stream.contentType };
  };
  return { method: "HEAD", written: write(random, { method: "HEAD", target: pathOf(random, name) }), expect, closes: "never", name };
}

function deleteRequest(random: Random, _model: Model, name: string): FuzzRequest {
  return {
    method: "DELETE",
    written: write(random, { method: "DELETE", target: pathOf(random, name) }),
    expect: (now) => now.delete(name),
    closes: "never",
  };
}

/** What touches no stream. */
function otherRequest(random: Random, _model: Model, name: string): FuzzRequest {
  const [method, target, expected] = random.pick<readonly [string, string, Expected]>([
    ["GET", "/health", { status: 200, body: Buffer.from('{"status":"ok"}') }],
    ["OPTIONS", PREFIX + name, { status: 204 }],
    ["OPTIONS", "*", { status: 204 }],
    ["PATCH", PREFIX + name, { status: 405, code: "method-not-allowed" }],
    ["GET", "/elsewhere", { status: 404, code: "unknown-path" }],
    ["PUT", `${PREFIX}a//b`, { status: 400, code: "invalid-name" }],
    ["GET", `${PREFIX}%zz`, { status: 400, code: "invalid-name" }],
  ]);
  return { method, written: write(random, { method, target }), expect: () => expected, closes: "never" };
}
