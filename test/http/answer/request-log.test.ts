import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { RequestLog } from "../../../src/http/answer/request-log.js";
import { createLog, type Log } from "../../../src/ops/log.js";
import { requestBytes, startServer, type TestServer } from "../../helpers/test-server.js";

/** A server whose log a test waits for: `line` resolves to the next debug line about a request, without its times. */
async function loggedServer(context: TestContext): Promise<{ server: TestServer; line: () => Promise<string> }> {
  const lines: string[] = [];
  let tell: () => void = () => undefined;
  const write = (line: string): void => {
    const [, told] = /debug ((?:request|live|client) .*)$/.exec(line) ?? [];
    if (told !== undefined) lines.push(told.replace(/ ms=\d+$/, ""));
    tell();
  };
  const server = await startServer(context, { log: createLog({ level: "debug", format: "text", write }) });
  const line = async (): Promise<string> => {
    while (lines.length === 0) await new Promise<void>((resolve) => (tell = resolve));
    return lines.shift() ?? "";
  };
  return { server, line };
}

const TEXT = { "Content-Type": "text/plain" };

test("a request is a line when it is answered, with its stream, its status and the code of a refusal", async (context) => {
  const { server, line } = await loggedServer(context);
  await server.send("PUT", "a%20b", { headers: TEXT, body: "secret" });
  assert.equal(await line(), 'request answered method=PUT stream="a b" status=201');
  await server.send("POST", "none", { headers: { ...TEXT, "Stream-Seq": "secret" }, body: "secret" });
  assert.equal(await line(), "request answered method=POST stream=none status=404 code=stream-not-found");
  await server.send("GET", "a%20b?offset=secret");
  assert.equal(await line(), 'request answered method=GET stream="a b" status=400 code=invalid-offset');
  await server.send("GET", "/health");
  assert.equal(await line(), "request answered method=GET path=/health status=200");
});

test("a live read is a line when it begins, and one when it is over", async (context) => {
  const { server, line } = await loggedServer(context);
  await server.send("PUT", "a", { headers: TEXT });
  await line();
  const poll = server.send("GET", "a?live=long-poll&offset=now");
  assert.equal(await line(), "live read begins method=GET stream=a");
  await server.send("POST", "a", { headers: TEXT, body: "x" });
  const ends = [await line(), await line()].sort();
  assert.deepEqual(ends, ["request answered method=GET stream=a status=200", "request answered method=POST stream=a status=204"]);
  await poll;
  const reader = await server.connect();
  reader.write(requestBytes("GET", "a?live=sse&offset=now"));
  assert.equal(await line(), "live read begins method=GET stream=a");
  reader.socket.destroy();
  await once(reader.socket, "close");
  // The end of its side may come before the end of the connection.
  assert.match(await line(), /^(client left|request answered) method=GET stream=a status=200$/);
});

test("a log without debug messages gets none about requests", () => {
  const level = (name: "debug" | "info"): Log => createLog({ level: name, format: "text", write: () => undefined });
  assert.equal(RequestLog.of(level("info"), "/v1/stream/"), null);
  assert.notEqual(RequestLog.of(level("debug"), "/v1/stream/"), null);
});
