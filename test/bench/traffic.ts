import { requestBytes } from "../scale/load.js";
import { commandOf } from "./redis-answers.js";

/** What the connections of a load send: the same requests in turn, or something that depends on what was sent before. */
export type Traffic =
  | { readonly kind: "fixed"; readonly requests: readonly RequestShape[] }
  | { readonly kind: "spread"; readonly prefix: string; readonly streams: number; readonly bytes: number }
  | { readonly kind: "xadd"; readonly prefix: string; readonly streams: number; readonly bytes: number }
  | { readonly kind: "producers"; readonly prefix: string; readonly bytes: number }
  | { readonly kind: "lives"; readonly prefix: string; readonly appends: number; readonly bytes: number };

/** One request. */
export interface RequestShape {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body, or how many bytes of "x" are. */
  readonly body: string | number;
}

/** The body of a request as it is sent. */
export function bodyOf({ body }: RequestShape): string {
  return typeof body === "string" ? body : "x".repeat(body);
}

/** A request as it is sent. */
export function requestOf(shape: RequestShape): Buffer {
  return requestBytes(shape.method, shape.path, shape.headers, bodyOf(shape));
}

/** The next request of one connection. */
export type Next = () => Buffer;

const TEXT = { "Content-Type": "text/plain" };

/** The requests of the connection `index` of so many. */
export function requestsOf(traffic: Traffic, index: number, connections: number): Next {
  switch (traffic.kind) {
    case "fixed":
      return fixed(traffic.requests, index, connections);
    case "spread":
      return inTurn(
        streamsOf(traffic.streams, index, connections).map((stream) =>
          requestOf({ method: "POST", path: `${traffic.prefix}${stream}`, headers: TEXT, body: traffic.bytes }),
        ),
      );
    case "xadd":
      return inTurn(
        streamsOf(traffic.streams, index, connections).map((stream) =>
          commandOf("XADD", `${traffic.prefix}${stream}`, "*", "data", "x".repeat(traffic.bytes)),
        ),
      );
    case "producers":
      return producer(`${traffic.prefix}${index}`, traffic.bytes);
    case "lives":
      return lives(`${traffic.prefix}${index}-`, traffic.appends, traffic.bytes);
  }
}

const BYTES = new Map<RequestShape, Buffer>();

function bytesOf(shape: RequestShape): Buffer {
  let bytes = BYTES.get(shape);
  if (bytes === undefined) BYTES.set(shape, (bytes = requestOf(shape)));
  return bytes;
}

/** Each connection has its own part of the requests, so that no two ask for the same at a time where there are enough. */
function fixed(shapes: readonly RequestShape[], index: number, connections: number): Next {
  const own = shapes.length < connections ? shapes : shapes.filter((_, at) => at % connections === index);
  return inTurn(own.map(bytesOf), index);
}

/** Which of so many streams the connection `index` has for itself; where there are too few, it shares one. */
function streamsOf(streams: number, index: number, connections: number): number[] {
  if (streams < connections) return [index % streams];
  return Array.from({ length: Math.ceil((streams - index) / connections) }, (_, turn) => index + turn * connections);
}

function inTurn(requests: readonly Buffer[], first = 0): Next {
  let next = first % requests.length;
  return () => {
    const request = requests[next];
    if (request === undefined) throw new Error("there are no requests");
    next = (next + 1) % requests.length;
    return request;
  };
}

/** A JSON message of so many bytes. */
export function messageOf(bytes: number): string {
  return JSON.stringify({ text: "x".repeat(bytes - '{"text":""}'.length) });
}

function producer(path: string, bytes: number): Next {
  const headers = { "Content-Type": "application/json", "Producer-Id": "bench", "Producer-Epoch": "0", "Producer-Seq": "<seq>" };
  // Its parts are made once: a load takes no more of the machine than it must.
  const [before = "", after = ""] = requestBytes("POST", path, headers, messageOf(bytes)).toString("latin1").split("<seq>");
  let seq = -1;
  return () => {
    seq += 1;
    if (seq === 0) return requestBytes("PUT", path, { "Content-Type": "application/json" });
    return Buffer.from(`${before}${seq - 1}${after}`, "latin1");
  };
}

function lives(prefix: string, appends: number, bytes: number): Next {
  const body = "x".repeat(bytes);
  let life = 0;
  let step = 0;
  let append: Buffer = Buffer.alloc(0);
  return () => {
    const path = `${prefix}${life}`;
    step += 1;
    if (step === 1) {
      append = requestBytes("POST", path, TEXT, body);
      return requestBytes("PUT", path, TEXT);
    }
    if (step <= appends + 1) return append;
    step = 0;
    life += 1;
    return requestBytes("POST", path, { ...TEXT, "Stream-Closed": "true" });
  };
}
