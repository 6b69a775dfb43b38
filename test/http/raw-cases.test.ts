import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, test, type TestContext } from "node:test";
import { PARSER_VERSION } from "../helpers/http-parser.js";
import { connectionTo, type RawConnection } from "../helpers/raw-connection.js";
import { ALL_PATHS, takePath } from "../helpers/request-paths.js";
import { startServer } from "../helpers/test-server.js";

/** What a server makes of a case: the status and, of ours, the code; then whether the connection stays open. */
type Verdict = `${string} closes` | `${string} stays` | "closes";

/** Bytes as a client might send them, what our server makes of them, and what a bare `http.createServer` does. */
type RawCase = readonly [title: string, bytes: string, ours: Verdict, bare: Verdict];

const HOST = "Host: a\r\n";
const GET_LINE = "GET /v1/stream/a HTTP/1.1";
const GET = `${GET_LINE}\r\n${HOST}`;
const POST = `POST /v1/stream/a HTTP/1.1\r\n${HOST}Content-Type: application/octet-stream\r\n`;
const CHUNKED = "Transfer-Encoding: chunked\r\n";
const UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
const OK = "200 closes";
const KEPT = "200 stays";
const BAD = "400 bad-request closes";

/** What a server does since a version of Node's parser, and did before. */
function since(version: number, now: Verdict, before: Verdict): Verdict {
  return PARSER_VERSION >= version ? now : before;
}

const UNDERSTOOD: readonly RawCase[] = [
  ["a plain request", `${GET}\r\n`, KEPT, KEPT],
  ["empty lines before the request", `\r\n\r\n${GET}\r\n`, KEPT, KEPT],
  ["two spaces behind the method", `GET  /v1/stream/a HTTP/1.1\r\n${HOST}\r\n`, KEPT, KEPT],
  ["an absolute target", `GET http://b/v1/stream/a HTTP/1.1\r\n${HOST}\r\n`, KEPT, KEPT],
  ["HTTP/1.0", "GET /v1/stream/a HTTP/1.0\r\n\r\n", OK, OK],
  ["HTTP/1.0 that keeps its connection", "GET /v1/stream/a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", KEPT, OK],
  ["the last request of a connection", `${GET}Connection: close\r\n\r\n`, OK, OK],
  ["an empty body", `POST /v1/stream/a HTTP/1.1\r\n${HOST}Stream-Closed: true\r\nContent-Length: 0\r\n\r\n`, "204 stays", KEPT],
  [
    "chunks with an extension and trailers",
    `PUT /v1/stream/b HTTP/1.1\r\n${HOST}${CHUNKED}\r\n2;a=b\r\nhi\r\n0\r\nA: b\r\n\r\n`,
    "201 stays",
    KEPT,
  ],
  ["chunked in capitals", `PUT /v1/stream/b HTTP/1.1\r\n${HOST}Transfer-Encoding: CHUNKED\r\n\r\n2\r\nhi\r\n0\r\n\r\n`, "201 stays", KEPT],
  [
    "a list of codings with an empty place",
    `PUT /v1/stream/b HTTP/1.1\r\n${HOST}Transfer-Encoding: , chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
    "201 stays",
    KEPT,
  ],
];

/** RFC 9112, 3.2. */
const HOSTS: readonly RawCase[] = [
  ["no Host", "GET /v1/stream/a HTTP/1.1\r\n\r\n", "400 bad-request stays", "400 closes"],
  ["an empty Host", "GET /v1/stream/a HTTP/1.1\r\nHost:\r\n\r\n", KEPT, KEPT],
  ["two Hosts", `${GET}Host: b\r\n\r\n`, "400 invalid-header stays", KEPT],
  ["the same Host twice", `${GET}${HOST}\r\n`, "400 invalid-header stays", KEPT],
  ["two Hosts in HTTP/1.0", `GET /v1/stream/a HTTP/1.0\r\n${HOST}${HOST}\r\n`, "400 invalid-header closes", OK],
  ["a Host of two words", "GET /v1/stream/a HTTP/1.1\r\nHost: a b\r\n\r\n", "400 bad-request stays", KEPT],
  ["a Host with a user and a path", "GET /v1/stream/a HTTP/1.1\r\nHost: a@b/c\r\n\r\n", "400 bad-request stays", KEPT],
  ["a Host that is none in HTTP/1.0", "GET /v1/stream/a HTTP/1.0\r\nHost: a/b\r\n\r\n", "400 bad-request closes", OK],
  ["a wrong Host behind an absolute target", "GET http://b/v1/stream/a HTTP/1.1\r\nHost: a b\r\n\r\n", "400 bad-request stays", KEPT],
];

/** RFC 9112, 6. */
const BODIES: readonly RawCase[] = [
  ["gzip, chunked", `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`, "501 unknown-transfer-coding closes", KEPT],
  [
    "gzip and chunked in two headers",
    `${POST}Transfer-Encoding: gzip\r\n${CHUNKED}\r\n2\r\nhi\r\n0\r\n\r\n`,
    "501 unknown-transfer-coding closes",
    KEPT,
  ],
  ["an empty Transfer-Encoding", `${POST}Transfer-Encoding:\r\n\r\n`, BAD, since(9.4, "400 closes", KEPT)],
  ["an empty Transfer-Encoding before chunks", `${POST}Transfer-Encoding: \r\n\r\n2\r\nhi\r\n0\r\n\r\n`, BAD, "400 closes"],
  [
    "an empty Transfer-Encoding and a length",
    `${POST}Transfer-Encoding:\r\nContent-Length: 2\r\n\r\nhi`,
    BAD,
    since(9.4, "400 closes", KEPT),
  ],
  [
    "a length and an empty Transfer-Encoding",
    `${POST}Content-Length: 2\r\nTransfer-Encoding:\r\n\r\nhi`,
    BAD,
    since(9.3, "400 closes", KEPT),
  ],
  ["an empty Transfer-Encoding of a GET", `${GET}Transfer-Encoding:\r\n\r\n`, BAD, since(9.4, "400 closes", KEPT)],
  ["chunked twice", `${POST}Transfer-Encoding: chunked, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`, BAD, "400 closes"],
  [
    "chunks in HTTP/1.0",
    `POST /v1/stream/a HTTP/1.0\r\nContent-Type: text/plain\r\nConnection: keep-alive\r\n${CHUNKED}\r\n2\r\nhi\r\n0\r\n\r\n`,
    BAD,
    OK,
  ],
  ["Content-Length and Transfer-Encoding", `${POST}Content-Length: 5\r\n${CHUNKED}\r\n0\r\n\r\n`, BAD, "400 closes"],
  ["Transfer-Encoding and Content-Length", `${POST}${CHUNKED}Content-Length: 5\r\n\r\n0\r\n\r\n`, BAD, "400 closes"],
  ["an encoding that is not chunked at last", `${POST}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`, BAD, "400 closes"],
  ["chunked with a parameter", `${POST}Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n`, BAD, "400 closes"],
  ["two lengths", `${POST}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`, BAD, "400 closes"],
  ["the same length twice", `${POST}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`, BAD, "400 closes"],
  ["a list of lengths", `${POST}Content-Length: 5, 5\r\n\r\nhello`, BAD, "400 closes"],
  ["a negative length", `${POST}Content-Length: -1\r\n\r\n`, BAD, "400 closes"],
  ["a length with a sign", `${POST}Content-Length: +5\r\n\r\nhello`, BAD, "400 closes"],
  ["a length beyond all numbers", `${POST}Content-Length: 99999999999999999999\r\n\r\n`, BAD, "400 closes"],
  ["a space behind a header's name", `${POST}Content-Length : 5\r\n\r\nhello`, BAD, "400 closes"],
  ["a chunk without a length", `${POST}${CHUNKED}\r\nxyz\r\n`, BAD, "400 closes"],
  ["a chunk length with a prefix", `${POST}${CHUNKED}\r\n0x2\r\nhi\r\n0\r\n\r\n`, BAD, "400 closes"],
  ["a chunk that is longer than it says", `${POST}${CHUNKED}\r\n2\r\nhello\r\n0\r\n\r\n`, BAD, "400 closes"],
  ["a chunk length in a line that ends with LF", `${POST}${CHUNKED}\r\n2\nhi\r\n0\r\n\r\n`, BAD, "400 closes"],
  ["an endless chunk extension", `${POST}${CHUNKED}\r\n2;${"x".repeat(20_000)}`, "413 body-too-large closes", "413 closes"],
  [
    "an expectation that nobody can meet",
    `${POST}Expect: more\r\nContent-Length: 2\r\n\r\nhi`,
    "417 expectation-failed closes",
    "417 stays",
  ],
];

const NOT_HTTP: readonly RawCase[] = [
  ["no request line", "hello\r\n\r\n", BAD, "400 closes"],
  ["bytes of another protocol", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", BAD, "400 closes"],
  ["an unknown version", "GET / HTTP/9.9\r\n\r\n", BAD, "400 closes"],
  ["a path with a space", `GET /a b HTTP/1.1\r\n${HOST}\r\n`, BAD, "400 closes"],
  ["a path with a NUL", `GET /v1/stream/a\x00 HTTP/1.1\r\n${HOST}\r\n`, BAD, "400 closes"],
  ["a line that ends with LF alone", `${GET_LINE}\n${HOST}\r\n`, since(9, BAD, KEPT), since(9, "400 closes", KEPT)],
  ["a header without a colon", `GET / HTTP/1.1\r\n${HOST}nonsense\r\n\r\n`, BAD, "400 closes"],
  ["a header's name with a space", `${GET}Stream Seq: 1\r\n\r\n`, since(9, BAD, KEPT), since(9, "400 closes", KEPT)],
  ["a header's value with a NUL", `GET / HTTP/1.1\r\n${HOST}Stream-Seq: a\x00b\r\n\r\n`, BAD, "400 closes"],
  ["a header's value with a lone CR", `GET / HTTP/1.1\r\n${HOST}Stream-Seq: a\rb\r\n\r\n`, BAD, "400 closes"],
  ["a header in two lines", `GET / HTTP/1.1\r\n${HOST}Stream-Seq: a\r\n b\r\n\r\n`, BAD, "400 closes"],
  ["a header of 16 KiB", `GET / HTTP/1.1\r\n${HOST}X: ${"x".repeat(16 * 1024)}\r\n\r\n`, "431 header-too-large closes", "431 closes"],
  ["ten thousand headers", `GET / HTTP/1.1\r\n${HOST}${"X: x\r\n".repeat(10_000)}\r\n`, "431 header-too-large closes", "431 closes"],
  ["a path of 17 KiB", `GET /${"x".repeat(17 * 1024)} HTTP/1.1\r\n${HOST}\r\n`, "431 header-too-large closes", "431 closes"],
  ["CONNECT", `CONNECT example.com:443 HTTP/1.1\r\n${HOST}\r\n`, "405 method-not-allowed closes", "closes"],
  ["a method that nobody knows", `FOO /v1/stream/a HTTP/1.1\r\n${HOST}\r\n`, "405 method-not-allowed closes", "400 closes"],
  ["a method in small letters", `get /v1/stream/a HTTP/1.1\r\n${HOST}\r\n`, "405 method-not-allowed closes", "400 closes"],
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", BAD, "400 closes"],
];

/** Bytes behind a request are dropped with its connection: of two answers there is one. */
const LAST_ONES: readonly RawCase[] = [
  ["an Upgrade", `${GET}${UPGRADE}\r\n`, OK, KEPT],
  ["an Upgrade with a request behind it", `${GET}${UPGRADE}\r\n${GET}\r\n`, OK, KEPT],
  ["an Upgrade without its Connection", `${GET}Upgrade: websocket\r\n\r\n`, OK, KEPT],
  ["an Upgrade with a body", `PUT /v1/stream/b HTTP/1.1\r\n${HOST}${UPGRADE}Content-Length: 2\r\n\r\nhi${GET}\r\n`, "201 closes", KEPT],
  [
    "an Upgrade with a body in chunks",
    `PUT /v1/stream/b HTTP/1.1\r\n${HOST}${UPGRADE}${CHUNKED}\r\n2\r\nhi\r\n0\r\n\r\n${GET}\r\n`,
    "201 closes",
    KEPT,
  ],
];

/** What has come back when the server has ended the connection, or has answered a request that the test sends behind the case. */
async function verdictOn(connection: RawConnection, bytes: string): Promise<Verdict> {
  connection.write(bytes);
  const first = await connection.answer().catch(() => null);
  if (first === null) return "closes";
  const isProblem = first.headers["content-type"] === "application/problem+json";
  const code: string = isProblem ? ` ${JSON.parse(first.text).code}` : "";
  if (isProblem) assert.equal(first.headers["x-content-type-options"], "nosniff");
  const closes = first.headers["connection"] === "close";
  if (closes) assert.equal(await connection.rest(), "", "behind the last answer");
  else {
    connection.write(`${GET}\r\n`);
    assert.equal((await connection.answer()).status, 200, "the next answer");
  }
  return `${first.status}${code} ${closes ? "closes" : "stays"}`;
}

async function bareVerdict(context: TestContext, bytes: string): Promise<Verdict> {
  const server = createServer((req, res) => {
    req.resume();
    req.on("end", () => res.end("bare"));
  });
  const connection = await connectionTo(context, server);
  return verdictOn(connection, bytes);
}

for (const [what, cases] of Object.entries({
  "what is understood": UNDERSTOOD,
  "a Host": HOSTS,
  "a body": BODIES,
  "what is not HTTP": NOT_HTTP,
  "the last of a connection": LAST_ONES,
})) {
  for (const path of ALL_PATHS) {
    describe(`${what}, on the ${path} path`, () => {
      for (const [title, bytes, ours] of cases) {
        test(title, async (context) => {
          takePath(context, path);
          const server = await startServer(context, { journalBytes: 64 * 1024 });
          await server.send("PUT", "a");
          assert.equal(await verdictOn(await server.connect(), bytes), ours);
          assert.equal((await server.send("GET", "a")).text, "", "nothing was appended");
        });
      }
    });
  }

  describe(`${what}, on a bare http.createServer`, () => {
    for (const [title, bytes, , bare] of cases) test(title, async (context) => assert.equal(await bareVerdict(context, bytes), bare));
  });
}
