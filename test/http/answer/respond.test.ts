import assert from "node:assert/strict";
import { createServer, ServerResponse, type IncomingMessage } from "node:http";
import { describe, test, type TestContext } from "node:test";
import { Exchange } from "../../../src/http/exchange/exchange.js";
import type { InFlight } from "../../../src/http/answer/in-flight.js";
import { OwnResponse } from "../../../src/http/node/own-response.js";
import { problem } from "../../../src/http/encoding/problems.js";
import { readHeaders } from "../../../src/http/request/request-headers.js";
import { EMPTY_BODY, type Responder } from "../../../src/http/answer/respond.js";
import { connectDirectly } from "../../helpers/direct-exchange.js";
import type { LogLine } from "../../helpers/engine.js";
import { httpParts, type HttpParts } from "../../helpers/http-parts.js";
import { nodeAnswer, socketOf } from "../../helpers/node-answer.js";
import { connectionTo, RawConnection, type Answer } from "../../helpers/raw-connection.js";

type Answering = (responder: Responder, exchange: Exchange, inFlight: InFlight, parts: HttpParts) => void;

/** A connection to a server that answers everything with `answer`. */
async function connectTo(context: TestContext, answer: Answering, kind: typeof ServerResponse = ServerResponse): Promise<RawConnection> {
  const parts = httpParts({ maxLargeBytes: 256 * 1024 * 1024 });
  const { responder, inFlight } = parts;
  const server = createServer({ ServerResponse: kind, keepAliveTimeout: 75_000 }, (req: IncomingMessage, res: ServerResponse) => {
    const exchange = new Exchange(req, res, { path: "/", query: "" }, readHeaders(req.rawHeaders), false);
    inFlight.begin(exchange);
    answer(responder, exchange, inFlight, parts);
  });
  return connectionTo(context, server);
}

/** The same of ours, whose answers go straight to it. */
function directTo(context: TestContext, answer: Answering): Promise<RawConnection> {
  const parts = httpParts();
  return connectDirectly(context, (exchange) => answer(parts.responder, exchange, parts.inFlight, parts));
}

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

describe("an HTTP answer", () => {
  test("with a body tells its length, and the connection stays", async (context) => {
    const connection = await connectTo(context, (responder, exchange) =>
      responder.send(exchange, 200, ["Stream-Cursor", "7"], Buffer.from("hello")),
    );
    for (let round = 0; round < 2; round += 1) {
      connection.write(GET);
      const { status, headers, text } = await connection.answer();
      assert.deepEqual(
        [status, text, headers["content-length"], headers["stream-cursor"], headers["connection"]],
        [200, "hello", "5", "7", "keep-alive"],
      );
    }
  });

  test("with an empty body has the length 0", async (context) => {
    const connection = await connectTo(context, (responder, exchange) => responder.send(exchange, 200, [], EMPTY_BODY));
    connection.write(GET);
    assert.equal((await connection.answer()).headers["content-length"], "0");
  });

  test("that can have no body has no length", async (context) => {
    const connection = await connectTo(context, (responder, exchange) => responder.send(exchange, 204, [], null));
    connection.write(GET);
    const { headers } = await connection.answer();
    assert.deepEqual([headers["content-length"], headers["transfer-encoding"]], [undefined, undefined]);
  });

  test("ends the request's time in flight", async (context) => {
    const sizes: number[] = [];
    const connection = await connectTo(context, (responder, exchange, inFlight) => {
      sizes.push(inFlight.size);
      responder.send(exchange, 204, [], null);
      sizes.push(inFlight.size);
    });
    connection.write(GET);
    await connection.answer();
    assert.deepEqual(sizes, [1, 0]);
  });

  test("to a request that still arrives waits for those that arrive with it", async (context) => {
    const events: string[] = [];
    const connection = await connectTo(
      context,
      (responder, exchange) => {
        const res = nodeAnswer(exchange);
        exchange.arriving = true;
        res.on("finish", () => events.push("answered"));
        responder.send(exchange, 200, [], Buffer.from("hello"));
        events.push(`handled, ${res.writableEnded ? "ended" : "not ended"}`);
      },
      OwnResponse,
    );
    connection.write(GET);
    assert.equal((await connection.answer()).text, "hello");
    assert.deepEqual(events, ["handled, not ended", "answered"]);
  });

  test("that waits goes out at once when it has to, and once", async (context) => {
    const ended: boolean[] = [];
    const connection = await connectTo(
      context,
      (responder, exchange) => {
        exchange.arriving = true;
        responder.send(exchange, 200, [], Buffer.from("hello"));
        responder.answerWaiting();
        ended.push(nodeAnswer(exchange).writableEnded);
        responder.answerWaiting();
      },
      OwnResponse,
    );
    for (let round = 0; round < 2; round += 1) {
      connection.write(GET);
      assert.equal((await connection.answer()).text, "hello");
    }
    assert.deepEqual(ended, [true, true]);
  });

  for (const { what, bytes, kind } of [
    {
      what: "that is large does not wait, so that it counts as unread before the next one is made",
      bytes: 64 * 1024 + 1,
      kind: OwnResponse,
    },
    {
      what: "in somebody else's server does not wait: what that makes of it is a part of the request's own event",
      bytes: 5,
      kind: ServerResponse,
    },
  ]) {
    test(what, async (context) => {
      const ended: boolean[] = [];
      const answer: Answering = (responder, exchange) => {
        exchange.arriving = true;
        responder.send(exchange, 200, [], Buffer.alloc(bytes));
        ended.push(nodeAnswer(exchange).writableEnded);
      };
      const connection = await connectTo(context, answer, kind);
      connection.write(GET);
      assert.equal((await connection.answer()).headers["content-length"], String(bytes));
      assert.deepEqual(ended, [true]);
    });
  }

  for (const [what, connect] of [
    ["", connectTo],
    [", also where it would go straight to it", directTo],
  ] as const) {
    test(`of a server that stops is the connection's last${what}`, async (context) => {
      const connection = await connect(context, (responder, exchange, inFlight) => {
        void inFlight.drain();
        responder.send(exchange, 204, [], null);
      });
      connection.write(GET);
      assert.equal((await connection.answer()).headers["connection"], "close");
      assert.equal(await connection.rest(), "");
    });
  }

  test("that its client does not read is not kept for ever", async (context) => {
    let begun: (parts: HttpParts) => void = () => {};
    const hasBegun = new Promise<HttpParts>((resolve) => (begun = resolve));
    const connection = await connectTo(context, (responder, exchange, _inFlight, parts) => {
      responder.send(exchange, 200, [], Buffer.alloc(64 * 1024 * 1024));
      begun(parts);
    });
    connection.socket.pause();
    connection.write(GET);
    const { unread, clock } = await hasBegun;
    assert.equal(unread.bytes, 64 * 1024 * 1024);
    clock.advance(62_000);
    assert.equal(unread.bytes, 0);
    connection.socket.resume();
    assert.ok((await connection.rest()).length < 64 * 1024 * 1024);
  });

  test("that its client took slowly leaves no timer to the next one", async (context) => {
    const timeouts: (number | undefined)[] = [];
    const connection = await connectTo(context, (responder, exchange) => {
      timeouts.push(socketOf(exchange).timeout);
      responder.send(exchange, 200, [], Buffer.alloc(6 * 1024 * 1024));
    });
    connection.write(GET + GET);
    for (let round = 0; round < 2; round += 1) assert.equal((await connection.answer()).body.length, 6 * 1024 * 1024);
    assert.deepEqual(timeouts, [undefined, undefined]);
  });

  test("to a client that is gone is not written, and no other client's answer gives way to it", async (context) => {
    let answered: () => void = () => {};
    const isAnswered = new Promise<void>((resolve) => (answered = resolve));
    const connection = await connectTo(context, (responder, exchange, inFlight, { unread }) => {
      exchange.res.on("close", () => {
        const { mock } = context.mock.method(unread, "admits");
        responder.send(exchange, 200, [], Buffer.from("hello"));
        responder.refuse(exchange, problem("overloaded"));
        assert.equal(inFlight.size, 0);
        assert.equal(mock.callCount(), 0);
        answered();
      });
      exchange.req.socket.destroy();
    });
    connection.write(GET);
    await isAnswered;
  });
});

/** What a server of ours sends for an answer, its date aside, directly or by Node's own object. */
async function sentBy(
  context: TestContext,
  isDirect: boolean,
  request: string,
  answer: Answering,
): Promise<Answer & { readonly date: boolean }> {
  const answerAtOnce: Answering = (responder, exchange, inFlight, parts) => {
    const { direct } = exchange;
    answer(responder, exchange, inFlight, parts);
    if (isDirect) assert.equal(direct?.isBusy, false);
  };
  const connection = isDirect ? await directTo(context, answerAtOnce) : await connectTo(context, answerAtOnce, OwnResponse);
  let seen: Answer | null = null;
  for (let round = 0; round < 2; round += 1) {
    connection.write(request);
    seen = await connection.answer({ toHead: request.startsWith("HEAD") });
  }
  assert.ok(seen !== null);
  const { date, ...headers } = seen.headers;
  return { ...seen, headers, date: date !== undefined };
}

describe("an answer that goes straight to its connection says what Node's own would", () => {
  const bodies: readonly (readonly [string, Buffer | null])[] = [
    ["no body", null],
    ["an empty one", EMPTY_BODY],
    ["every byte", Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte))],
    ["the largest that is joined", Buffer.alloc(8192, "\xe9", "latin1")],
    ["a larger one", Buffer.alloc(8193, "\xe9", "latin1")],
    ["one that a socket does not take at once", Buffer.alloc(64 * 1024, "\xff", "latin1")],
  ];
  for (const request of [GET, "HEAD / HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\r\n"]) {
    for (const [status, headers] of [
      [200, ["ETag", '"1"', "Content-Type", "text/plain; charset=\xe9"]],
      [201, ["Location", "http://a/b"]],
      [404, []],
    ] as const) {
      for (const [what, body] of bodies) {
        // A GET with a body that nobody can tell the end of is no answer of this server's.
        if (body === null && request === GET) continue;
        test(`${status} to ${request.slice(0, 4)} with ${what}`, async (context) => {
          const answer: Answering = (responder, exchange) => responder.send(exchange, status, headers, body);
          const direct = await sentBy(context, true, request, answer);
          assert.deepEqual(direct, await sentBy(context, false, request, answer));
          assert.equal(direct.status, status);
        });
      }
    }
    for (const status of [204, 304]) {
      test(`${status} to ${request.slice(0, 4)}`, async (context) => {
        const answer: Answering = (responder, exchange) => responder.send(exchange, status, ["Stream-Next-Offset", "1"], null);
        const direct = await sentBy(context, true, request, answer);
        assert.deepEqual(direct, await sentBy(context, false, request, answer));
      });
    }
    test(`a refusal to ${request.slice(0, 4)}`, async (context) => {
      const answer: Answering = (responder, exchange) =>
        responder.refuse(exchange, problem("producer-gap", { expectedSeq: 1, receivedSeq: 2 }));
      const direct = await sentBy(context, true, request, answer);
      assert.deepEqual(direct, await sentBy(context, false, request, answer));
    });
  }

  test("and waits for those that arrive with it, once", async (context) => {
    const seen: boolean[] = [];
    const connection = await directTo(context, (responder, exchange) => {
      exchange.arriving = true;
      responder.send(exchange, 200, [], Buffer.from("hello"));
      seen.push(exchange.direct?.isBusy ?? false);
      responder.answerWaiting();
      seen.push(exchange.direct?.isBusy ?? false);
      responder.answerWaiting();
    });
    for (let round = 0; round < 2; round += 1) {
      connection.write(GET);
      assert.equal((await connection.answer()).text, "hello");
    }
    assert.deepEqual(seen, [true, false, true, false]);
  });

  test("but goes through Node where the body that the client promised is not read", async (context) => {
    const connection = await directTo(context, (responder, exchange) => responder.send(exchange, 200, [], Buffer.from("hello")));
    for (let round = 0; round < 2; round += 1) {
      connection.write("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
      assert.equal((await connection.answer()).text, "hello");
      connection.write("world");
    }
  });

  test("and is not written to a client that is gone", async (context) => {
    let answered: (inFlight: InFlight) => void = () => {};
    const isAnswered = new Promise<InFlight>((resolve) => (answered = resolve));
    const connection = await directTo(context, (responder, exchange, inFlight) => {
      inFlight.begin(exchange);
      exchange.onGone(() => {
        responder.send(exchange, 200, [], Buffer.from("hello"));
        answered(inFlight);
      });
      exchange.req.socket.destroy();
    });
    connection.write(GET);
    assert.equal((await isAnswered).size, 0);
  });

  test("and its bytes count until the client has taken them, or is cut", async (context) => {
    const line = "x".repeat(15 * 1024);
    let cut: () => void = () => {};
    const isCut = new Promise<void>((resolve) => (cut = resolve));
    const unreadBytes: number[] = [];
    const connection = await directTo(context, (responder, exchange, _inFlight, { unread, clock }) => {
      const socket = socketOf(exchange);
      socket.once("close", cut);
      // The system takes some MiB while nobody reads.
      while (socket.writableLength === 0) socket.write(line);
      responder.send(exchange, 200, [], Buffer.from("hello"));
      unreadBytes.push(unread.bytes);
      clock.advance(60_000);
      unreadBytes.push(unread.bytes);
    });
    connection.socket.pause();
    connection.write(GET);
    await isCut;
    assert.ok((unreadBytes[0] ?? 0) > "hello".length);
    assert.equal(unreadBytes[1], 0);
  });
});

describe("an HTTP answer that can't be sent", () => {
  for (const [what, connect] of [
    ["is 500", connectTo],
    ["straight to its connection is 500", directTo],
  ] as const) {
    test(`${what}, and those of the same turn are given`, async (context) => {
      const waiting: Exchange[] = [];
      const lines: (readonly LogLine[])[] = [];
      const first = await connect(
        context,
        (responder, exchange, _inFlight, parts) => {
          lines.push(parts.lines);
          exchange.arriving = true;
          if (waiting.push(exchange) < 3) return;
          for (const [at, each] of waiting.entries()) responder.send(each, 200, at === 1 ? ["Location", "a\nb"] : [], Buffer.from("hello"));
        },
        OwnResponse,
      );
      const others = await Promise.all([0, 1].map(() => RawConnection.open(first.socket.remotePort ?? 0)));
      const clients = [first, ...others];
      for (const client of clients) client.write(GET);
      const answers = await Promise.all(clients.map((client) => client.answer()));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 500]);
      assert.equal(JSON.parse(answers.find(({ status }) => status === 500)?.text ?? "").code, "internal-error");
      assert.deepEqual(
        lines[0]?.map(({ level, message }) => [level, message]),
        [["error", "a request failed"]],
      );
      await Promise.all(others.map((client) => client.close()));
    });
  }

  test("because something of it is out already ends the connection, and no other", async (context) => {
    const connection = await connectTo(
      context,
      (responder, exchange) => {
        nodeAnswer(exchange).writeHead(200, { "Content-Length": "10" });
        responder.send(exchange, 200, [], Buffer.from("hello"));
      },
      OwnResponse,
    );
    const other = await RawConnection.open(connection.socket.remotePort ?? 0);
    connection.write(GET);
    assert.equal(await connection.rest(), "");
    other.write("GET / HTTP/1.1\r\n");
    assert.equal(other.socket.destroyed, false);
    await other.close();
  });
});

describe("the answer of a refusal", () => {
  test("is a problem document", async (context) => {
    const connection = await connectTo(context, (responder, exchange) => responder.refuse(exchange, problem("overloaded")));
    connection.write(GET);
    const { status, headers, text } = await connection.answer();
    assert.deepEqual(
      [status, headers["content-type"], headers["cache-control"], headers["retry-after"]],
      [503, "application/problem+json", "no-store", "1"],
    );
    assert.equal(JSON.parse(text).code, "overloaded");
  });

  test("to a client that goes away while it is refused is not written", async (context) => {
    let answered: () => void = () => {};
    const isAnswered = new Promise<void>((resolve) => (answered = resolve));
    const connection = await connectTo(context, (responder, exchange) => {
      exchange.res.on("close", () => {
        responder.refuse(exchange, problem("body-too-large"));
        answered();
      });
      exchange.req.socket.destroy();
    });
    connection.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    await isAnswered;
  });
});

test("an endless answer is sent in chunks, and its end is the connection's", async (context) => {
  const connection = await connectTo(context, (responder, exchange) => {
    responder.beginEndless(exchange, ["Content-Type", "text/event-stream"]);
    nodeAnswer(exchange).write("one");
    nodeAnswer(exchange).write("two");
    exchange.res.end();
  });
  connection.write(GET);
  const { headers } = await connection.head();
  assert.deepEqual([headers["transfer-encoding"], headers["content-length"], headers["connection"]], ["chunked", undefined, "close"]);
  assert.equal(await connection.rest(), "onetwo");
});

test("a raw problem is a complete answer", () => {
  const { responder } = httpParts();
  const [head = "", body = ""] = responder.rawProblem(problem("header-too-large")).split("\r\n\r\n");
  assert.match(head, /^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
  assert.match(head, new RegExp(`\r\nContent-Length: ${body.length}\r\n`));
  assert.match(head, /\r\nConnection: close$/);
  assert.equal(JSON.parse(body).code, "header-too-large");
  assert.match(head, /\r\nAccess-Control-Allow-Origin: \*\r\n/);
});
