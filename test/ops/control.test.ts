import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { Control, type Conversation, type Speaker } from "../../src/ops/control.js";
import { packageVersion } from "../../src/ops/version.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { tempDir } from "../helpers/temp-dir.js";
import { until } from "../helpers/until.js";

const GREETING = `${JSON.stringify({ streamdir: packageVersion(), protocol: 1, pid: process.pid })}\n`;

interface Begun {
  readonly clock: ManualClock;
  readonly client: Socket;
  /** All that is said until the connection ends. */
  readonly answer: Promise<string>;
}

async function begin(t: TestContext, conversations?: ReadonlyMap<string, Conversation>): Promise<Begun> {
  const clock = new ManualClock();
  const control = new Control(clock, conversations);
  const server = createServer((connection) => control.serve(connection));
  const path = join(tempDir(), "a");
  await new Promise<void>((resolve) => void server.listen(path, resolve));
  t.after(() => void server.close());
  const client = connect(path);
  await once(client, "connect");
  let text = "";
  client.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  return { clock, client, answer: once(client, "close").then(() => text) };
}

/** Resolves when no connection waits for its deadline any more. */
async function ended(clock: ManualClock): Promise<void> {
  while (clock.pendingCount > 0) await new Promise((resolve) => setImmediate(resolve));
}

test("a connection is told what answers: the program and its version, what it speaks, and its process", async (t) => {
  const { client, answer } = await begin(t);
  await once(client, "data");
  client.end();
  assert.equal(await answer, GREETING);
});

for (const [what, request, error] of [
  ["a request that it does not know", '{"command":"tell me"}\n', "unknown-command"],
  ["what is no request", "\0\n", "unknown-command"],
  ["several", "a\nb\nc\n", "unknown-command"],
  ["a request without end", "x".repeat(5000), "request-too-long"],
] as const) {
  test(`${what} is answered with ${error}, and the connection ends`, async (t) => {
    const { client, answer, clock } = await begin(t);
    client.write(request);
    assert.equal(await answer, `${GREETING}{"error":"${error}"}\n`);
    await ended(clock);
  });
}

test("a request may come in pieces", async (t) => {
  const { client, answer } = await begin(t);
  client.write("{");
  await once(client, "data");
  client.write("}\n");
  assert.equal(await answer, `${GREETING}{"error":"unknown-command"}\n`);
});

test("who says nothing is cut off after 5 s", async (t) => {
  const { client, answer, clock } = await begin(t);
  await once(client, "data");
  clock.advance(4999);
  assert.equal(clock.pendingCount, 1);
  clock.advance(1);
  assert.equal(await answer, GREETING);
});

test("who leaves before being greeted does no harm", async (t) => {
  const { client, answer, clock } = await begin(t);
  client.destroy();
  await answer;
  await ended(clock);
});

test("a conversation goes on for longer than 5 s, in lines, until a side ends it", async (t) => {
  const heard: string[] = [];
  const speakers: Speaker[] = [];
  const chat: Conversation = (speaker) => {
    speakers.push(speaker);
    return {
      heard: (request) => {
        heard.push(request);
        if (request === "b") speaker.end({ ended: true });
      },
      left: () => void heard.push("left"),
    };
  };
  const { client, clock, answer } = await begin(t, new Map([["chat", chat]]));
  client.write('{"command":"chat"}\na\n');
  await until(() => heard.length > 0);
  clock.advance(10_000);
  client.write("b\nc\n");
  assert.equal(await answer, `${GREETING}{"ended":true}\n`);
  await until(() => heard.includes("left"));
  // Nobody hears this, and it does no harm.
  speakers[0]?.say({ late: true });
  assert.deepEqual(heard, ["a", "b", "left"]);
});

test("a conversation that ends at once, or hears a line that is too long, ends the connection", async (t) => {
  const short: Conversation = (speaker) => (speaker.end({ error: "busy" }), null);
  const one = await begin(t, new Map([["short", short]]));
  one.client.write('{"command":"short"}\n');
  assert.equal(await one.answer, `${GREETING}{"error":"busy"}\n`);
  const long: Conversation = () => ({ heard: () => assert.fail("it was too long"), left: () => undefined });
  const other = await begin(t, new Map([["long", long]]));
  other.client.write(`{"command":"long"}\n${"x".repeat(5000)}`);
  assert.equal(await other.answer, `${GREETING}{"error":"request-too-long"}\n`);
});

describe("who asks on and on and reads nothing", () => {
  const REQUESTS = 400_000;
  const echo: Conversation = (speaker) => ({ heard: () => speaker.say({ answer: "a" }), left: () => undefined });

  async function flooded(t: TestContext): Promise<{ client: Socket; connection: Socket }> {
    const control = new Control(new ManualClock(), new Map([["echo", echo]]));
    const path = join(tempDir(), "a");
    const server = createServer((connection) => control.serve(connection));
    await new Promise<void>((resolve) => void server.listen(path, resolve));
    t.after(() => void server.close());
    const accepted = once(server, "connection");
    const client = connect(path);
    // It leaves with requests unsent.
    client.on("error", () => undefined);
    t.after(() => void client.destroy());
    client.write(`{"command":"echo"}\n${"r\n".repeat(REQUESTS)}`);
    const [connection] = (await accepted) as [Socket];
    await until(() => connection.isPaused() || connection.writableLength > 1024 * 1024);
    return { client, connection };
  }

  test("is not heard until it reads, and then answered in full", async (t) => {
    const { client, connection } = await flooded(t);
    assert.ok(connection.writableLength <= 1024 * 1024, `${connection.writableLength} bytes are kept`);
    let lines = 0;
    client.setEncoding("utf8").on("data", (chunk: string) => (lines += chunk.split("\n").length - 1));
    await until(() => lines === REQUESTS + 1);
  });

  test("is seen to leave", async (t) => {
    const { client, connection } = await flooded(t);
    const closed = new Promise((resolve) => connection.once("close", resolve));
    client.destroy();
    await closed;
  });
});
