import type { Random } from "../helpers/random.js";

/** A request as it is to be written down. */
export interface Wire {
  readonly method: string;
  readonly target: string;
  readonly version?: string;
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /** Absent where there is none, and no header of one. */
  readonly body?: Buffer;
}

/** What is written for a request: its lines may be changed before they become bytes. */
export interface WrittenRequest {
  requestLine: string;
  headers: string[];
  body: Buffer;
}

/** Writes a request down in one of the many ways that mean the same. */
export function write(random: Random, { method, target, version = "HTTP/1.1", headers = [], body }: Wire): WrittenRequest {
  const isChunked = body !== undefined && version === "HTTP/1.1" && random.chance(0.4);
  const framing: [string, string][] =
    body === undefined
      ? []
      : [isChunked ? ["Transfer-Encoding", random.pick(["chunked", "Chunked", ", chunked"])] : ["Content-Length", String(body.length)]];
  const noise: [string, string][] = random.chance(0.2) ? [["X-Noise", "x".repeat(random.integer(0, 300))]] : [];
  const all = random.shuffle([
    ["Host", random.pick(["a", "streams.test:4437", "[::1]:80", "a_b"])] as const,
    ...headers,
    ...framing,
    ...noise,
  ]);
  return {
    requestLine: `${method} ${target} ${version}`,
    headers: all.map(
      ([name, value]) => `${inSomeCase(random, name)}:${random.pick([" ", "", "  ", "\t"])}${value}${random.pick(["", "", " "])}`,
    ),
    body: body === undefined ? Buffer.alloc(0) : isChunked ? chunked(random, body) : body,
  };
}

/** The bytes of a request. */
export function bytesOf({ requestLine, headers, body }: WrittenRequest): Buffer {
  return Buffer.concat([Buffer.from(`${requestLine}\r\n${headers.map((line) => `${line}\r\n`).join("")}\r\n`, "latin1"), body]);
}

function inSomeCase(random: Random, name: string): string {
  return random.weighted([
    [6, name],
    [2, name.toLowerCase()],
    [1, name.toUpperCase()],
  ]);
}

function chunked(random: Random, body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const end = Math.min(
      body.length,
      at +
        random.weighted([
          [1, 1],
          [2, random.integer(1, 40)],
          [2, body.length],
        ]),
    );
    const size = (end - at).toString(16);
    const extension = random.chance(0.1) ? random.pick([";a", ";a=b", ';a="b"']) : "";
    parts.push(
      Buffer.from(`${random.chance(0.2) ? size.padStart(6, "0").toUpperCase() : size}${extension}\r\n`),
      body.subarray(at, end),
      Buffer.from("\r\n"),
    );
    at = end;
  }
  return Buffer.concat([...parts, Buffer.from(`0\r\n${random.chance(0.1) ? "X-Trailer: a\r\n" : ""}\r\n`)]);
}

/** Cuts bytes into the pieces in which they are sent. */
export function piecesOf(random: Random, bytes: Buffer): Buffer[] {
  if (random.chance(0.5)) return [bytes];
  const cuts = Array.from({ length: random.integer(1, 6) }, () => random.integer(0, bytes.length)).sort((a, b) => a - b);
  return [0, ...cuts].map((cut, at) => bytes.subarray(cut, cuts[at] ?? bytes.length)).filter((piece) => piece.length > 0);
}
