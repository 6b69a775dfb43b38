import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";
import { once, within } from "../../src/server/stop.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { lacksProc } from "../helpers/platform.js";
import { startNode } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";
import { startServer } from "../helpers/test-server.js";

const CLIENTS = 100;

/** Connects and asks while the thread of the server does nothing at all, and tells how each request ended. */
const ASKING = `
  const { connect } = require("node:net");
  const { parentPort, workerData: { port, path, count } } = require("node:worker_threads");
  const ended = Array.from({ length: count }, () => new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.on("connect", () => socket.write("HEAD " + path + " HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"));
    socket.on("data", (bytes) => (text += bytes));
    socket.on("error", ({ code }) => resolve(code));
    socket.on("end", () => resolve(text.slice(0, text.indexOf("\\r\\n"))));
  }));
  Promise.all(ended).then((how) => parentPort.postMessage(how));
`;

describe("a stop", () => {
  test("answers who has connected and was not accepted yet", { skip: lacksProc }, async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: { "Content-Type": "text/plain" } });
    const path = new URL(`${server.server.url}a`).pathname;
    const worker = new Worker(ASKING, { eval: true, workerData: { port: server.port, path, count: CLIENTS } });
    const told = new Promise<string[]>((resolve) => worker.once("message", resolve));
    // Nothing is accepted until the system has the requests of all.
    while (requestsHeldFor(server.port) < CLIENTS);
    await server.server.close();
    assert.deepEqual([...new Set(await told)], ["HTTP/1.1 200 OK"]);
    await worker.terminate();
  });

  test("ends before its process does, also where nothing else keeps that alive", async (context) => {
    const dir = tempDir();
    const script = `
      import { createServer } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)};
      const server = await createServer({ dir: ${JSON.stringify(dir)}, port: 0, shutdownDelayMs: 50 });
      server.closeNow();
      await server.close();
      console.log("closed");
    `;
    const { status, stdout } = await startNode(context, ["--import", import.meta.resolve("tsx"), "--input-type=module", "--eval", script])
      .ended;
    assert.deepEqual([status, stdout.trim()], [0, "closed"]);
    assert.equal(existsSync(join(dir, "lock")), false);
  });

  test("is made once", async () => {
    let times = 0;
    const stop = once(() => Promise.resolve(void (times += 1)));
    await Promise.all([stop(), stop()]);
    assert.equal(times, 1);
  });

  test("waits for what it must, and no longer than it may", async () => {
    const clock = new ManualClock();
    let isOver = false;
    const waiting = within(clock, 10, new Promise(() => undefined)).then(() => void (isOver = true));
    clock.advance(9);
    await Promise.resolve();
    assert.equal(isOver, false);
    clock.advance(1);
    await waiting;
    await within(clock, 10, Promise.resolve());
    await assert.rejects(within(clock, 10, Promise.reject(new Error("why"))), /why/);
  });
});

/** Connections to a port that the system has, with bytes that nobody has read: the states and queues of proc(5). */
function requestsHeldFor(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync("/proc/net/tcp", "utf8").split("\n");
  return rows.filter((row) => {
    const [, address = "", , state, queues = ""] = row.trim().split(/\s+/);
    return address.endsWith(local) && state === "01" && !queues.endsWith(":00000000");
  }).length;
}
