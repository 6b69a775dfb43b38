import assert from "node:assert/strict";
import { createServer, ServerResponse, type IncomingMessage } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { CommonHeaders, lengthHeader, PreparedResponse } from "../../src/http/prepared-response.js";

const COMMON = new CommonHeaders(["X-Content-Type-Options", "nosniff", "Access-Control-Allow-Origin", "*"]);

/** What a server sends, the date aside, when it gets `request` on a connection of its own and answers with `begin`. */
async function sent(t: TestContext, request: string, answer: (response: PreparedResponse) => void): Promise<string> {
  const server = createServer<typeof IncomingMessage, typeof PreparedResponse>({ ServerResponse: PreparedResponse, keepAliveTimeout: 75_000 }, (_, response) => answer(response));
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  t.after(() => socket.destroy());
  socket.setEncoding("latin1");
  // The second request is answered only where the connection stays open.
  socket.end(request + request);
  let received = "";
  for await (const chunk of socket) received += String(chunk);
  return received.replaceAll(/Date: .*\r\n/g, "Date: then\r\n");
}

const REQUESTS = ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"];

const ANSWERS: readonly { readonly status: number; readonly headers: readonly string[]; readonly length: number | null; readonly body: string }[] = [
  { status: 200, headers: ["ETag", '"1"', "Content-Length", "5"], length: null, body: "hello" },
  { status: 200, headers: ["ETag", '"1"'], length: 5, body: "hello" },
  { status: 200, headers: [], length: 0, body: "" },
  { status: 201, headers: ["Location", "/a"], length: 0, body: "" },
  { status: 200, headers: [], length: null, body: "hello" },
  { status: 204, headers: ["Stream-Next-Offset", "1"], length: null, body: "" },
  { status: 304, headers: ["ETag", '"1"'], length: null, body: "" },
  { status: 404, headers: ["Connection", "close"], length: 2, body: "no" },
];

/** Heads with the length as their last line: where Node writes it by itself. */
function lengthLast(answers: string): string {
  return answers.replaceAll(/(Content-Length: \d+\r\n)((?:[^\r\n]+\r\n)*)/g, "$2$1");
}

describe("a prepared answer is to the byte what writeHead sends, but for the length's place", () => {
  for (const request of REQUESTS) {
    for (const { status, headers, length, body } of ANSWERS) {
      test(`${status} with ${headers.join(" ")} and the length ${length} to ${JSON.stringify(request)}`, async (t) => {
        const prepared = await sent(t, request, (response) => {
          response.writePrepared(status, COMMON, headers, length);
          response.end(body);
        });
        const written = await sent(t, request, (response) => {
          ServerResponse.prototype.writeHead.call(response, status, [...COMMON.list, ...headers, ...lengthHeader(length)]);
          response.end(body);
        });
        assert.equal(lengthLast(prepared), lengthLast(written));
        assert.equal(prepared.includes("Content-Length"), written.includes("Content-Length"));
        assert.match(prepared, /^HTTP\/1\.1 \d+ [A-Z]/);
      });
    }
  }
});

describe("an answer that ends with its body is to the byte what end sends", () => {
  const bodies: readonly (readonly [string, Buffer])[] = [
    ["none", Buffer.alloc(0)],
    ["a small one", Buffer.from("hello")],
    ["every byte", Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte))],
    ["the largest that is joined", Buffer.alloc(8192, "\xe9", "latin1")],
    ["a larger one", Buffer.alloc(8193, "\xe9", "latin1")],
    ["one that a socket does not take at once", Buffer.alloc(8 * 1024 * 1024, "\xff", "latin1")],
  ];
  for (const request of REQUESTS) {
    for (const [what, body] of bodies) {
      test(`${what}, to ${JSON.stringify(request)}`, async (t) => {
        const answer = (end: "endWith" | "end") => (response: PreparedResponse) => {
          response.writePrepared(200, COMMON, ["Content-Type", "text/plain; charset=\xe9"], body.length);
          response[end](body);
        };
        const joined = await sent(t, request, answer("endWith"));
        assert.equal(joined, await sent(t, request, answer("end")));
        assert.match(joined, /^HTTP\/1\.1 200 OK/);
      });
    }
  }

  test("also behind a part that was written before", async (t) => {
    const seen = await sent(t, REQUESTS[0] ?? "", (response) => {
      response.writePrepared(200, COMMON, [], 11);
      response.write("hello ");
      response.endWith(Buffer.from("there"));
    });
    assert.equal(seen.match(/\r\n\r\nhello there/g)?.length, 2);
  });

  test("also in chunks", async (t) => {
    const seen = await sent(t, REQUESTS[0] ?? "", (response) => {
      response.writePrepared(200, COMMON, [], null);
      response.endWith(Buffer.from("hello"));
    });
    assert.equal(seen.match(/\r\n\r\n5\r\nhello\r\n0\r\n\r\n/g)?.length, 2);
  });
});

test("a header that can't stand in a head is refused", async (t) => {
  assert.throws(() => new CommonHeaders(["A b", "c"]), /Header name/);
  assert.throws(() => new CommonHeaders(["A", "b\r\nC: d"]), /header content/);
  await sent(t, REQUESTS[0] ?? "", (response) => {
    assert.throws(() => response.writePrepared(200, COMMON, ["Location", "/a\r\nSet-Cookie: b"], null), /header content/);
    response.end();
  });
});

test("a head that is out can be let go of, and only then", async (t) => {
  const seen = await sent(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", (response) => {
    response.writePrepared(200, COMMON, [], 11);
    response.forgetHead();
    response.write("hello ");
    response.forgetHead();
    assert.equal(response.headersSent, true);
    assert.throws(() => response.writeHead(200), /ERR_HTTP_HEADERS_SENT|after they are sent/);
    response.end("there");
  });
  assert.equal(seen.match(/HTTP\/1\.1 200 OK/g)?.length, 2);
  assert.equal(seen.match(/\r\n\r\nhello there/g)?.length, 2);
});

test("the status and whether the head is there can be asked for", async (t) => {
  await sent(t, REQUESTS[0] ?? "", (response) => {
    assert.equal(response.headersSent, false);
    response.writePrepared(201, COMMON, [], 0);
    assert.deepEqual([response.statusCode, response.headersSent], [201, true]);
    response.end();
  });
});
