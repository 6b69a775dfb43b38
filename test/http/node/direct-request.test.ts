import assert from "node:assert/strict";
import { createServer, ServerResponse, type Server } from "node:http";
import { test, type TestContext } from "node:test";
import { DirectRequest, type BodySink } from "../../../src/http/node/direct-request.js";
import { connectionTo, type RawConnection } from "../../helpers/raw-connection.js";

type Handler = (request: DirectRequest, response: ServerResponse<DirectRequest>) => void;

/** A connection to a server of such requests. */
async function connectionFor(t: TestContext, handler: Handler): Promise<RawConnection> {
  const server: Server<typeof DirectRequest> = createServer({ IncomingMessage: DirectRequest }, handler);
  return connectionTo(t, server);
}

/** Notes what comes, and answers with it at the end. */
function echo(response: ServerResponse<DirectRequest>, seen: string[] = []): BodySink {
  return { take: (chunk) => seen.push(chunk.toString()) > 0, end: () => void response.end(seen.join("|")), abandon: () => undefined };
}

test("the body of a direct request is passed on before the request's event is over, and its stream stays empty", async (t) => {
  const read: number[] = [];
  const connection = await connectionFor(t, (request, response) => {
    assert.equal(request.passTo(echo(response)), true);
    request.on("data", (chunk: Buffer) => read.push(chunk.length));
  });
  for (const body of ["hello", "world"]) {
    connection.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n${body}`);
    assert.equal((await connection.answer()).text, body);
  }
  assert.deepEqual(read, []);
});

test("a body of other bytes than Node's is as good", async (t) => {
  const connection = await connectionFor(t, (request, response) => {
    request.passTo(echo(response));
    request.push(new TextEncoder().encode("xhellox").subarray(1, 6));
    request.push(null);
  });
  connection.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
  assert.equal((await connection.answer()).text, "hello");
});

test("a direct request without a body has no events, and is over for Node all the same", async (t) => {
  const events: string[] = [];
  const ended: boolean[] = [];
  const connection = await connectionFor(t, (request, response) => {
    request.expectNoBody();
    for (const event of ["data", "end", "close", "error"]) request.on(event, () => events.push(event));
    ended.push(request.readableEnded);
    setImmediate(() => {
      ended.push(request.readableEnded);
      response.end("hello");
    });
  });
  for (let count = 0; count < 2; count += 1) {
    connection.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.equal((await connection.answer()).text, "hello");
  }
  assert.deepEqual([events, ended], [[], [false, true, false, true]]);
});

test("a direct request can release its headers while it waits for its answer", async (t) => {
  const connection = await connectionFor(t, (request, response) => {
    request.forgetHeaders();
    response.end(JSON.stringify([request.rawHeaders, request.headers]));
  });
  for (let count = 0; count < 2; count += 1) {
    connection.write("GET / HTTP/1.1\r\nHost: a\r\nCookie: b=c\r\n\r\n");
    assert.equal((await connection.answer()).text, "[[],{}]");
  }
});

test("the stream of a direct request that was read to its end says so", async (t) => {
  const connection = await connectionFor(t, (request, response) => {
    request.on("end", () => response.end(String(request.readableEnded)));
    request.resume();
    assert.equal(request.readableEnded, false);
  });
  connection.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
  assert.equal((await connection.answer()).text, "true");
});

test("the body of a direct request in chunks is passed on chunk by chunk", async (t) => {
  const connection = await connectionFor(t, (request, response) => void request.passTo(echo(response)));
  connection.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  assert.equal((await connection.answer()).text, "abc|de");
});

test("the rest of a body that has its answer is dropped, and the next request is served", async (t) => {
  const taken: string[] = [];
  const connection = await connectionFor(t, (request, response) => {
    const take = (chunk: Buffer): boolean => {
      taken.push(chunk.toString());
      response.end(`has ${chunk.toString()}`);
      return true;
    };
    request.passTo({ take, end: () => undefined, abandon: () => undefined });
  });
  connection.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
  assert.equal((await connection.answer()).text, "has abc");
  connection.write("defPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nghi");
  assert.equal((await connection.answer()).text, "has ghi");
  assert.deepEqual(taken, ["abc", "ghi"]);
});

test("the body of a direct request that has begun to stream goes on to stream", async (t) => {
  const connection = await connectionFor(t, (request, response) => {
    request.once("readable", () => {
      assert.equal(request.passTo(echo(response)), false);
      request.setEncoding("latin1");
      const streamed: string[] = [];
      request.on("data", (text: string) => streamed.push(text));
      request.on("end", () => response.end(`streamed ${streamed.join("")}`));
    });
  });
  connection.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
  assert.equal((await connection.answer()).text, "streamed hello");
});

test("the sink of a body that has enough for a turn of the event loop gets the rest in later ones", async (t) => {
  const lengths: number[] = [];
  let turn = 0;
  const turns = new Set<number>();
  const connection = await connectionFor(t, (request, response) => {
    const next = (): void => {
      turn += 1;
      if (!response.writableEnded) setImmediate(next);
    };
    setImmediate(next);
    const take = ({ length }: Buffer): boolean => {
      assert.ok(!turns.has(turn), "one part in a turn");
      turns.add(turn);
      lengths.push(length);
      return false;
    };
    request.passTo({ take, end: () => void response.end("whole"), abandon: () => assert.fail("nobody has gone") });
  });
  const body = Buffer.alloc(1024 * 1024);
  connection.write(Buffer.concat([Buffer.from(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`), body]));
  assert.equal((await connection.answer()).text, "whole");
  assert.equal(
    lengths.reduce((sum, length) => sum + length),
    body.length,
  );
  assert.ok(lengths.length >= 16, "the connection was read from in pieces");
});

test("the body of a direct request that nobody asks for is kept in one piece, as much of it as is read", async (t) => {
  const body = "0123456789".repeat(10_000);
  const chunks = body.replaceAll(/./g, "1\r\n$&\r\n");
  const requests: DirectRequest[] = [];
  const responses: ServerResponse<DirectRequest>[] = [];
  const connection = await connectionFor(t, (request, response) => {
    requests.push(request);
    responses.push(response);
  });
  for (const how of ["passed", "streamed"]) {
    const arrived = new Promise<void>((resolve) => connection.socket.once("data", () => resolve()));
    connection.write(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
    while (requests.length === 0 || requests[0]?.socket.isPaused() === false) await new Promise<void>((resolve) => setImmediate(resolve));
    const [request, response] = [requests.pop(), responses.pop()];
    assert.ok(request !== undefined && response !== undefined);
    assert.equal(request.readableLength, 0);
    const lengths: number[] = [];
    let all = "";
    const take = (chunk: Buffer): boolean => {
      lengths.push(chunk.length);
      all += chunk.toString();
      return true;
    };
    const end = (): void => void response.end(how);
    if (how === "passed") assert.ok(request.passTo({ take, end, abandon: () => assert.fail("nobody has gone") }));
    else request.on("data", take).on("end", end);
    await arrived;
    assert.equal((await connection.answer()).text, how);
    assert.ok((lengths[0] ?? 0) >= 16 * 1024 && (lengths[0] ?? 0) < 64 * 1024, `${lengths[0]} bytes were there`);
    assert.equal(all, body);
  }
});

test("the body of a direct request is streamed from where it stops being passed on", async (t) => {
  const connection = await connectionFor(t, (request, response) => {
    const take = (): boolean => {
      request.stopPassing();
      request.resume();
      request.on("close", () => response.end("closed"));
      return true;
    };
    request.passTo({ take, end: () => assert.fail("the stream has the end"), abandon: () => assert.fail("nobody has gone") });
  });
  connection.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
  connection.write("1\r\nb\r\n0\r\n\r\n");
  assert.equal((await connection.answer()).text, "closed");
});

test("the body of a direct request that nobody wants is dropped", async (t) => {
  const connection = await connectionFor(t, (_, response) => void response.end("no"));
  for (let count = 0; count < 2; count += 1) {
    connection.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert.equal((await connection.answer()).text, "no");
  }
});

test("a client that goes away in the middle of a direct request abandons its body, once", async (t) => {
  const calls: string[] = [];
  let gone: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => (gone = resolve));
  const connection = await connectionFor(t, (request) => {
    request.passTo({
      take: (chunk) => calls.push(String(chunk)) > 0,
      end: () => void calls.push("end"),
      abandon: () => void calls.push("abandoned"),
    });
    request.on("close", gone);
  });
  connection.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
  connection.socket.destroy();
  await closed;
  assert.deepEqual(calls, ["abc", "abandoned"]);
});

test("a client that goes away after the body of a direct request abandons nothing", async (t) => {
  const calls: string[] = [];
  let gone: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => (gone = resolve));
  const connection = await connectionFor(t, (request) => {
    request.passTo({ take: () => true, end: () => void calls.push("end"), abandon: () => void calls.push("abandoned") });
    request.on("close", gone);
  });
  connection.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
  connection.socket.destroy();
  await closed;
  assert.deepEqual(calls, ["end"]);
});

test("a client that goes away in the middle of a streamed body is an error of the request", async (t) => {
  let failed: (error: Error) => void = () => undefined;
  const failure = new Promise<Error>((resolve) => (failed = resolve));
  const connection = await connectionFor(t, (request, response) => {
    request.passTo(echo(response));
    request.on("error", failed);
  });
  connection.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
  connection.socket.destroy();
  assert.match((await failure).message, /aborted/);
});
