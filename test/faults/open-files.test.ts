import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { assertExactlyOnce, HonestProducer } from "../helpers/honest-producer.js";
import { lacksLimits, limitProcess } from "../helpers/machine.js";
import { startNode, startStreamdir } from "../helpers/process.js";
import { ask, codeOf, RealServer, type Reply } from "../helpers/real-server.js";
import { tempDir } from "../helpers/temp-dir.js";

const STREAMS = 100;
const CONNECTIONS = 4;
/** A small journal, so that it needs new files all the time. */
const SIZES = ["--journal-bytes", "64KiB", "--journal-bypass-bytes", "16KiB", "--max-loaded-streams", "10"];
const TEXT = { "Content-Type": "text/plain" };
/** Of which a quarter is for segments. Starting from TypeScript opens each source at once, so it can't be much lower. */
const FEW_FILES = 192;
/** Fewer than any server has open: nothing more can be opened. */
const NOTHING_MORE = 12;

/** As a clock does that is corrected while the server runs: half as much time goes by on it as for the timers. */
const SLOW_WALL_CLOCK = "const now = Date.now, startMs = now(); Date.now = () => startMs + Math.floor((now() - startMs) / 2);";

/** A program that serves streams from a server of its own, in the directory that it is given. */
const OWN_SERVER = `
  import { createServer } from "node:http";
  import { createHandler } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url))};
  const handler = await createHandler({ dir: process.argv[1], journalBytes: 64 * 1024, journalBypassBytes: 16 * 1024 });
  const server = createServer(handler).listen(0, "127.0.0.1", () => console.log("http://127.0.0.1:" + server.address().port + "/v1/stream/"));
  const alive = setInterval(() => {}, 1000);
  process.once("SIGTERM", async () => {
    server.closeAllConnections();
    server.close();
    await handler.close();
    clearInterval(alive);
  });
`;

/** A server with many streams, none of which is in memory. */
async function startWithStreams(context: TestContext, under: readonly string[] = []): Promise<RealServer> {
  const server = new RealServer(context, SIZES);
  await server.start(under);
  for (let index = 0; index < STREAMS; index += 1) {
    assert.equal((await server.ask("PUT", `cold/${index}`, { headers: TEXT, body: `stream ${index}` })).status, 201);
  }
  assert.equal((await server.stop()).status, 0);
  await server.start(under);
  return server;
}

async function readAllCold(server: RealServer): Promise<void> {
  for (let index = 0; index < STREAMS; index += 1) {
    const { status, body } = await server.ask("GET", `cold/${index}`);
    assert.equal(`${status} ${body}`, `200 stream ${index}`);
  }
}

/** Requests go out on connections that are open already, and stay open. */
async function keepConnections(context: TestContext, server: RealServer): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  context.after(async () => agent.destroy());
  server.agent = agent;
  await Promise.all(Array.from({ length: CONNECTIONS }, () => server.ask("GET", "/health")));
}

describe("too many open files", { skip: lacksLimits }, () => {
  test("a process that may open few files reads any number of streams, and has some left for connections", async (context) => {
    const server = await startWithStreams(context, ["prlimit", `--nofile=${FEW_FILES}`]);
    await readAllCold(server);
    await readAllCold(server);
    const open = readdirSync(`/proc/${server.process.pid}/fd`).length;
    assert.ok(open <= FEW_FILES / 2, `${open} files are open`);
    assert.equal((await server.stop()).status, 0);
    await server.verify();
  });

  test("idle connections, however many, cost those who are connected nothing; others are told to come again", async (context) => {
    const server = await startWithStreams(context, ["prlimit", `--nofile=${FEW_FILES}`]);
    await keepConnections(context, server);
    assert.equal((await server.ask("PUT", "crowded", { headers: TEXT })).status, 201);
    const crowd = Array.from({ length: FEW_FILES + 50 }, () =>
      net
        .connect(Number(new URL(server.url).port), "127.0.0.1")
        .on("error", () => undefined)
        .resume(),
    );
    await Promise.race(crowd.map((socket) => once(socket, "close")));
    const message = "x".repeat(5000);
    for (let count = 0; count < 100; count += 1) {
      const { status, body } = await server.ask("POST", "crowded", { headers: TEXT, body: message });
      assert.equal(status, 204, `append ${count}: ${body}`);
    }
    await readAllCold(server);
    assert.equal((await server.ask("GET", "/health")).status, 200);
    const newcomer = await server.ask("GET", "/health", { agent: new http.Agent() });
    assert.deepEqual([newcomer.status, codeOf(newcomer)], [503, "overloaded"]);
    assert.match(String(newcomer.headers["retry-after"]), /^\d+$/);
    for (const socket of crowd) socket.destroy();
    while ((await server.ask("GET", "/health", { agent: new http.Agent() })).status === 503);
    assert.equal((await server.ask("GET", "crowded")).body, message.repeat(100));
    assert.doesNotMatch(server.process.stderrText(), /EMFILE/);
    assert.equal((await server.stop()).status, 0);
    await server.verify();
  });

  test("connections that take all descriptors in a server of one's own do not get the journal's", async (context) => {
    const dir = join(tempDir(), "data");
    const own = startNode(context, ["--import", import.meta.resolve("tsx"), "--input-type=module", "-e", OWN_SERVER, dir], {
      under: ["prlimit", `--nofile=${FEW_FILES}`],
    });
    const url = await own.stdoutLine(/^http:/);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    context.after(async () => agent.destroy());
    assert.equal((await ask(`${url}s`, "PUT", { agent, headers: TEXT })).status, 201);
    const crowd: net.Socket[] = [];
    const openFiles = (): number => readdirSync(`/proc/${own.pid}/fd`).length;
    // Node turns away whoever finds no descriptor, also where a file had it for a moment: another client takes it then.
    // The server keeps one for that, which counts, and may lose it.
    while (openFiles() < FEW_FILES - 1) {
      const socket = net.connect(Number(new URL(url).port), "127.0.0.1").on("error", () => undefined);
      crowd.push(socket);
      await Promise.race([once(socket, "connect"), once(socket, "close")]);
    }
    const message = "x".repeat(5000);
    for (let count = 0; count < 100; count += 1) {
      const { status, body } = await ask(`${url}s`, "POST", { agent, headers: TEXT, body: message });
      assert.equal(status, 204, `append ${count}: ${body}`);
    }
    for (const socket of crowd) socket.destroy();
    assert.equal((await ask(`${url}s`, "GET", { agent })).body, message.repeat(100));
    own.kill("SIGTERM");
    assert.equal((await own.ended).status, 0);
    assert.equal((await startStreamdir(context, ["verify", dir]).ended).status, 0);
  });

  test("where nothing more can be opened an append is refused within seconds, health says so, and both end by themselves", async (context) => {
    const server = new RealServer(context, SIZES);
    await server.start();
    await keepConnections(context, server);
    assert.equal((await server.ask("PUT", "s", { headers: TEXT })).status, 201);
    for (const round of [1, 2]) {
      limitProcess(server.process.pid, "nofile", NOTHING_MORE);
      let refused: Reply;
      let longestMs = 0;
      do {
        const startedMs = performance.now();
        refused = await server.ask("POST", "s", { headers: TEXT, body: "x".repeat(4000) });
        longestMs = Math.max(longestMs, performance.now() - startedMs);
      } while (refused.status === 204);
      assert.deepEqual([refused.status, codeOf(refused)], [503, "overloaded"], refused.body);
      assert.match(String(refused.headers["retry-after"]), /^\d+$/);
      assert.ok(longestMs < 10_000, `${longestMs} ms`);
      const health = await server.ask("GET", "/health");
      assert.deepEqual([health.status, health.body], [503, '{"status":"unavailable","reason":"no more files can be opened"}']);
      limitProcess(server.process.pid, "nofile", 1024);
      // Nobody appends meanwhile.
      await server.process.stderrLine(/files can be opened again/, round);
      assert.equal((await server.ask("GET", "/health")).status, 200);
      assert.equal((await server.ask("POST", "s", { headers: TEXT, body: "y" })).status, 204);
    }
    assert.equal((await server.stop()).status, 0);
    await server.verify();
  });

  test("where nothing more can be opened, reads are refused, appends wait, nothing ends; then all goes on", async (context) => {
    const server = await startWithStreams(context);
    await keepConnections(context, server);
    const producers = Array.from({ length: CONNECTIONS - 1 }, (_, index) => new HonestProducer(server, `hot/${index}`, `p${index}`));
    for (const { stream } of producers)
      assert.equal((await server.ask("PUT", stream, { headers: { "Content-Type": "application/json" } })).status, 201);
    for (const round of [1, 2]) {
      limitProcess(server.process.pid, "nofile", NOTHING_MORE);
      const working = Promise.all(
        producers.map(async (producer) => {
          for (let count = 0; count < 60; count += 1) await producer.append(4000);
        }),
      );
      // What is being written is nearly full.
      await server.process.stderrLine(/the journal can't get more room now.*EMFILE/, round);
      const refused = await server.ask("GET", `cold/${round}`);
      assert.equal(refused.status, 503, refused.body);
      assert.equal(codeOf(refused), "overloaded");
      assert.match(String(refused.headers["retry-after"]), /^\d+$/);
      // It waits to be accepted, or is turned away.
      const newcomer = server.ask("GET", "/health", { agent: new http.Agent() }).catch(() => null);
      limitProcess(server.process.pid, "nofile", 1024);
      await working;
      await newcomer;
      assert.equal((await server.ask("GET", "/health", { agent: new http.Agent() })).status, 200);
      assert.equal((await server.ask("GET", `cold/${round}`)).body, `stream ${round}`);
    }
    await readAllCold(server);
    assert.equal((await server.ask("GET", "/health")).status, 200);
    await assertExactlyOnce(server, producers);
    const { status, stderr } = await server.stop();
    assert.equal(status, 0, stderr);
    await server.verify();
    await server.start();
    await assertExactlyOnce(server, producers);
  });

  test("appends that waited for a descriptor go on as soon as there is one, whatever the wall clock says", async (context) => {
    const server = new RealServer(context, SIZES);
    await server.start(["env", `NODE_OPTIONS=--import="data:text/javascript,${encodeURIComponent(SLOW_WALL_CLOCK)}"`]);
    await keepConnections(context, server);
    const producer = new HonestProducer(server, "hot", "p");
    assert.equal((await server.ask("PUT", "hot", { headers: { "Content-Type": "application/json" } })).status, 201);
    limitProcess(server.process.pid, "nofile", NOTHING_MORE);
    const working = (async (): Promise<void> => {
      for (let count = 0; count < 60; count += 1) await producer.append(4000);
    })();
    await server.process.stderrLine(/the journal can't get more room now.*EMFILE/);
    limitProcess(server.process.pid, "nofile", 1024);
    await working;
    assert.equal((await server.ask("GET", "/health")).status, 200);
    await assertExactlyOnce(server, [producer]);
    assert.equal((await server.stop()).status, 0);
    await server.verify();
  });

  test("a large creation that is refused because nothing can be opened leaves no trace, and the server goes on", async (context) => {
    const server = new RealServer(context, SIZES);
    await server.start();
    await keepConnections(context, server);
    // That there is none is known before, so that its files are the first thing that fails.
    assert.equal((await server.ask("GET", "large")).status, 404);
    limitProcess(server.process.pid, "nofile", NOTHING_MORE);
    const refused = await server.ask("PUT", "large", { headers: TEXT, body: "x".repeat(100_000) });
    assert.deepEqual([refused.status, codeOf(refused)], [503, "overloaded"], refused.body);
    for (let count = 0; count < 50; count += 1) assert.equal((await server.ask("GET", "/health")).status, 200);
    limitProcess(server.process.pid, "nofile", 1024);
    assert.equal((await server.insist("PUT", "large", { headers: TEXT, body: "y".repeat(100_000) })).status, 201);
    assert.equal((await server.ask("GET", "large")).body, "y".repeat(100_000));
    assert.equal((await server.stop()).status, 0);
    await server.verify();
  });

  test("a server that is stopped while nothing can be opened ends in order, and the next has everything", async (context) => {
    const server = await startWithStreams(context);
    await keepConnections(context, server);
    const producer = new HonestProducer(server, "hot", "p");
    assert.equal((await server.ask("PUT", "hot", { headers: { "Content-Type": "application/json" } })).status, 201);
    limitProcess(server.process.pid, "nofile", NOTHING_MORE);
    for (let count = 0; count < 5; count += 1) await producer.append(4000);
    const { status, stderr } = await server.stop();
    assert.equal(status, 0, stderr);
    await server.verify();
    await server.start();
    await assertExactlyOnce(server, [producer]);
    await readAllCold(server);
  });
});
