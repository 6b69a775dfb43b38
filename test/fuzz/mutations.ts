import { PARSER_VERSION } from "../helpers/http-parser.js";
import type { Random } from "../helpers/random.js";
import type { FuzzRequest } from "./requests.js";
import type { Expected } from "./stream-model.js";
import { bytesOf, type WrittenRequest } from "./wire.js";

/** Older parsers take them for what they are not: the names of headers. */
const NAMES_WITH_SPACES = PARSER_VERSION < 9 ? [] : ["A b: c", "A : b"];

/** A change to a request whose answer is known all the same. */
interface Mutation {
  /** Whether it can be made of a request. */
  readonly suits: (request: FuzzRequest) => boolean;
  readonly change: (random: Random, request: FuzzRequest) => FuzzRequest;
}

const BAD: Expected = { status: 400, code: "bad-request" };

function hasBody({ written }: FuzzRequest): boolean {
  return written.headers.some((line) => /^(content-length|transfer-encoding):/i.test(line));
}

function isChunked({ written }: FuzzRequest): boolean {
  return written.headers.some((line) => /^transfer-encoding:/i.test(line));
}

function without(headers: readonly string[], name: RegExp): string[] {
  return headers.filter((line) => !name.test(line));
}

/** The request with other lines, and what is then to be answered. */
function changed(request: FuzzRequest, written: Partial<WrittenRequest>, expected: Expected, closes: FuzzRequest["closes"]): FuzzRequest {
  const { method } = request;
  return { method, written: { ...request.written, ...written }, expect: () => expected, closes };
}

/** One more header, or several, among those that are there. */
function withHeaders(random: Random, { written }: FuzzRequest, ...more: readonly string[]): string[] {
  const headers = [...written.headers];
  for (const line of more) headers.splice(random.integer(0, headers.length), 0, line);
  return headers;
}

/** A head that HTTP's parser takes and the server does not: the connection goes on unless a body is under way. */
function headFault(expected: Expected, more: (random: Random) => readonly string[], dropped: RegExp | null = null): Mutation {
  return {
    suits: () => true,
    change: (random, request) => {
      const kept =
        dropped === null ? request : { ...request, written: { ...request.written, headers: without(request.written.headers, dropped) } };
      return changed(kept, { headers: withHeaders(random, kept, ...more(random)) }, expected, hasBody(request) ? "perhaps" : "never");
    },
  };
}

/** A head that is not HTTP. */
function brokenHead(expected: Expected, change: (random: Random, request: FuzzRequest) => Partial<WrittenRequest>): Mutation {
  // Nobody knows its method, so that the answer has a body.
  return {
    suits: () => true,
    change: (random, request) => ({ ...changed(request, change(random, request), expected, "always"), method: "unknown" }),
  };
}

/** A body that breaks: its request may have been refused by its head before. */
function brokenBody(change: (random: Random, body: Buffer) => Buffer): Mutation {
  return {
    suits: (request) =>
      isChunked(request) &&
      (request.method === "POST" || request.method === "PUT") &&
      !request.written.headers.some((line) => /^expect:/i.test(line)),
    change: (random, request) => changed(request, { body: change(random, request.written.body) }, { status: "refused" }, "always"),
  };
}

/** The same answer, and then the end of the connection. */
function last(headers: readonly string[], version = "HTTP/1.1"): Mutation {
  return {
    suits: (request) => version === "HTTP/1.1" || (!isChunked(request) && !request.written.headers.some((line) => /^expect:/i.test(line))),
    change: (random, request) => {
      const requestLine = request.written.requestLine.replace(/HTTP\/1\.1$/, version);
      return {
        ...request,
        written: { ...request.written, requestLine, headers: withHeaders(random, request, ...headers) },
        closes: "always",
      };
    },
  };
}

function mixed(random: Random, text: string): string {
  return random.pick([text, text.toLowerCase(), text.toUpperCase()]);
}

const MUTATIONS: readonly (readonly [weight: number, mutation: Mutation])[] = [
  [3, headFault(BAD, () => [], /^host:/i)],
  [3, headFault({ status: 400, code: "invalid-header" }, (random) => [`${mixed(random, "Host")}: ${random.pick(["a", "b"])}`])],
  [3, headFault(BAD, (random) => [`Host: ${random.pick(["a b", "a@b/c", "a/b", "[::1", "a:b", "%2", "\xe4"])}`], /^host:/i)],
  [
    2,
    headFault({ status: 400, code: "invalid-header" }, (random) =>
      random.chance(0.5) ? ["Stream-Seq: 1", "stream-seq: 2"] : ["Producer-Id: p", "PRODUCER-ID: p"],
    ),
  ],
  [2, headFault({ status: 417, code: "expectation-failed" }, () => ["Expect: more"], /^expect:/i)],
  [
    3,
    {
      suits: isChunked,
      change: (random, request) => {
        const headers = [`${mixed(random, "Transfer-Encoding")}: gzip`, ...request.written.headers];
        return changed(
          request,
          { headers: random.chance(0.5) ? headers : [...without(headers, /^transfer-encoding/i), "Transfer-Encoding: deflate, chunked"] },
          { status: 501, code: "unknown-transfer-coding" },
          "always",
        );
      },
    },
  ],
  [
    3,
    {
      suits: (request) => !hasBody(request) && request.method !== "HEAD",
      change: (random, request) =>
        changed(
          request,
          { headers: withHeaders(random, request, random.pick(["Transfer-Encoding:", "Transfer-Encoding: "])) },
          BAD,
          "always",
        ),
    },
  ],
  [
    2,
    brokenHead(BAD, (random, request) => ({
      headers: [
        ...without(request.written.headers, /^(content-length|transfer-encoding)/i),
        ...random.shuffle(["Content-Length: 3", "Transfer-Encoding: chunked"]),
      ],
      body: Buffer.from("0\r\n\r\n"),
    })),
  ],
  [
    2,
    brokenHead(BAD, (random, request) => ({
      headers: withHeaders(
        random,
        { ...request, written: { ...request.written, headers: without(request.written.headers, /^(content-length|transfer-encoding)/i) } },
        `Content-Length: ${random.pick(["-1", "+1", "1, 1", "0x1", "", "1e1", "99999999999999999999"])}`,
      ),
    })),
  ],
  [
    2,
    brokenHead(BAD, (random, request) => ({
      headers: withHeaders(random, request, random.pick(["nonsense", ...NAMES_WITH_SPACES, "A: b\x00c", "A: b\rc", "A: b\r\n c"])),
    })),
  ],
  [
    2,
    brokenHead(BAD, (random, { written }) => ({
      requestLine: random.pick([
        "nonsense",
        written.requestLine.replace("HTTP/1.1", "HTTP/9.9"),
        written.requestLine.replace(" HTTP", " more HTTP"),
        written.requestLine.replace("/", "/\x00"),
        "\x16\x03\x01",
      ]),
    })),
  ],
  [
    2,
    brokenHead({ status: "refused" }, (random, { method, written }) => ({
      requestLine: written.requestLine.replace(method, random.pick(["FOO", method.toLowerCase(), `${method}X`])),
    })),
  ],
  [
    1,
    brokenHead({ status: 431, code: "header-too-large" }, (_random, request) => ({
      headers: [...request.written.headers, `X: ${"x".repeat(17_000)}`],
    })),
  ],
  [
    4,
    brokenBody((random, body) =>
      Buffer.concat([
        Buffer.from(random.pick(["", "1\r\nx\r\n"])),
        Buffer.from(random.pick(["nonsense\r\n", "-1\r\n", "2\r\nlonger\r\n", "0x1\r\na\r\n"])),
        body,
      ]),
    ),
  ],
  [4, last(["Connection: close"])],
  [4, last(["Connection: Upgrade", "Upgrade: websocket"])],
  [2, last(["Upgrade: h2c"])],
  [2, last([], "HTTP/1.0")],
];

/** The request with one change, where one of those that are made now and then suits it. */
export function mutated(random: Random, request: FuzzRequest): FuzzRequest {
  const mutation = random.weighted(MUTATIONS);
  return mutation.suits(request) ? mutation.change(random, request) : request;
}

/** A request of which bytes were changed, lost or put in: what is right to answer is not known. */
export function garbled(random: Random, { written }: FuzzRequest): Buffer {
  let bytes = bytesOf(written);
  for (let changes = random.integer(1, 4); changes > 0; changes -= 1) {
    const at = random.integer(0, bytes.length - 1);
    const put = Buffer.from(
      random.pick(["\r\n", "\n", " ", "\x00", ":", "0", "\r\n\r\n", String.fromCharCode(random.integer(0, 255))]),
      "latin1",
    );
    bytes = Buffer.concat([
      bytes.subarray(0, at),
      random.chance(0.3) ? Buffer.alloc(0) : put,
      bytes.subarray(at + (random.chance(0.5) ? 1 : 0)),
    ]);
  }
  return bytes;
}
