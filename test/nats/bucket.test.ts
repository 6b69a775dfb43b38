import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, describe, test, type TestContext } from "node:test";
import { systemClock } from "../../src/ops/clock.js";
import type { NatsAddress } from "../../src/net/storage-address.js";
import { createServer as createStreamServer } from "../../src/server.js";
import type { ClusterStorage } from "../../src/storage/nats/cluster-storage.js";
import { API_ERROR, jsonOf, type ApiAnswer } from "../../src/storage/nats/jetstream/answers.js";
import { ClusterConnection } from "../../src/storage/nats/jetstream/connection.js";
import { loadNatsClient } from "../../src/storage/nats/client/nats-client.js";
import { ClusterUnusableError, openCluster } from "../../src/storage/nats/open-cluster.js";
import { created, keptLog, loaded, type LogLine } from "../helpers/engine.js";
import { startStreamdir } from "../helpers/process.js";
import { until } from "../helpers/until.js";
import { addressOf, newBucket, parsed } from "./buckets.js";
import { freePorts } from "../helpers/free-ports.js";
import { NatsCluster } from "./nats-cluster.js";
import { oldNatsServerPath } from "./nats-server-path.js";
import { SwitchingProxy } from "./switching-proxy.js";

/** What is opened for a test. */
interface Opened {
  readonly storage: ClusterStorage;
  readonly lines: readonly LogLine[];
}

/** Opens the engine; it is closed when the test is over. */
async function open(t: TestContext, address: NatsAddress, credsFile = ""): Promise<Opened> {
  const { log, lines } = keptLog();
  const storage = await openCluster({ address, credsFile, timeoutMs: 30_000, clock: systemClock(), log });
  t.after(() => storage.close());
  return { storage, lines };
}

/** Servers that have just started have no leader yet. */
function isNotOfWaiting({ message }: LogLine): boolean {
  return message !== "waiting for the NATS servers";
}

/** Holds that a cluster can't be used, and that the one line of why matches. */
async function assertRefused(t: TestContext, address: NatsAddress, why: RegExp, credsFile = ""): Promise<void> {
  await assert.rejects(open(t, address, credsFile), (fault) => {
    assert.ok(fault instanceof ClusterUnusableError, String(fault));
    assert.match(fault.message, why);
    assert.doesNotMatch(fault.message, /\n/);
    return true;
  });
}

/** Asks JetStream's API by hand. */
async function ask(t: TestContext, cluster: NatsCluster, call: string, query: object): Promise<ApiAnswer> {
  const given = { address: addressOf(cluster), credsFile: "", client: await loadNatsClient(), clock: systemClock() };
  const connection = await ClusterConnection.open({ ...given, log: keptLog().log });
  t.after(() => connection.close());
  for (;;) {
    const answer = await connection.requests.ask(`$JS.API.${call}`, JSON.stringify(query), 10_000);
    if (answer.kind !== "reply") continue;
    const json = jsonOf(answer.message);
    // Servers that have just started have no leader yet, and do not know each other.
    const code = json.error?.err_code;
    if (code !== API_ERROR.notAvailable && code !== API_ERROR.noSuitablePeers) return json;
  }
}

/** The JetStream streams that there are of a bucket. */
async function streamsOf(t: TestContext, cluster: NatsCluster, bucket: string): Promise<readonly string[]> {
  const { streams } = await ask(t, cluster, "STREAM.NAMES", {});
  const names = (streams ?? []) as string[]; // as the API has it
  return names.filter((name) => name.startsWith(`SD_${bucket}_`)).sort();
}

/** Starts servers for one test. */
async function startServers(t: TestContext, options: Parameters<typeof NatsCluster.start>[0]): Promise<NatsCluster> {
  const cluster = await NatsCluster.start(options);
  t.after(() => cluster.stop());
  return cluster;
}

describe("a bucket on three servers", () => {
  let cluster: NatsCluster;
  before(async () => {
    cluster = await NatsCluster.start({ size: 3 });
  });
  after(() => cluster.stop());

  test("is made once, however many open it at the same time, and has three copies in three shards", async (t) => {
    const address = addressOf(cluster);
    const opened = await Promise.all(Array.from({ length: 4 }, () => open(t, address)));
    for (const { lines } of opened) {
      const told = lines.find(({ message }) => message === "the NATS cluster is open");
      assert.deepEqual([told?.fields["shards"], told?.fields["replicas"]], [3, 3]);
      assert.deepEqual(
        lines.filter(isNotOfWaiting).filter(({ level }) => level === "warn"),
        [],
      );
    }
    assert.equal((await streamsOf(t, cluster, address.bucket)).length, 4);
    const makers = opened.flatMap(({ lines }) => lines.filter(({ message }) => message === "a new bucket was made"));
    assert.ok(makers.length > 0);
    for (const { level, fields } of makers) assert.deepEqual([level, fields], ["info", { bucket: address.bucket, shards: 3, replicas: 3 }]);
    const [one, other] = opened;
    assert.ok(one !== undefined && other !== undefined);
    await created(one.storage, "s", "bytes");
    assert.equal((await loaded(other.storage, "s")).state.tail, 5);
  });

  test("keeps the shards and copies that it has, also for those who name none", async (t) => {
    const bucket = newBucket();
    const { lines } = await open(t, addressOf(cluster, "?shards=2&replicas=1", bucket));
    assert.match(lines.find(({ level }) => level === "warn")?.message ?? "", /on one NATS server only/);
    const again = await open(t, addressOf(cluster, "", bucket));
    const told = again.lines.find(({ message }) => message === "the NATS cluster is open");
    assert.deepEqual([told?.fields["shards"], told?.fields["replicas"]], [2, 1]);
    assert.ok(again.lines.every(({ message }) => message !== "a new bucket was made"));
    await assertRefused(t, addressOf(cluster, "?shards=3", bucket), /the bucket has 2 shards, not 3/);
    await assertRefused(t, addressOf(cluster, "?replicas=3", bucket), /SD_.*_0 has num_replicas 1, not 3/);
  });

  test("that has lost JetStream streams is not opened, and gets no empty ones in their place", async (t) => {
    for (const [lost, isWritten] of [
      [["0"], false],
      [["1"], false],
      [["touch"], true],
      [["0", "touch"], true],
      [["0", "1"], false],
    ] as const) {
      const bucket = newBucket();
      const { storage } = await open(t, addressOf(cluster, "?shards=2&replicas=1", bucket));
      // In both shards.
      if (isWritten) for (let name = 0; name < 8; name += 1) await created(storage, `s${name}`, "bytes");
      await storage.close();
      const streams = lost.map((name) => `SD_${bucket}_${name}`);
      for (const stream of streams) await ask(t, cluster, `STREAM.DELETE.${stream}`, {});
      const left = await streamsOf(t, cluster, bucket);
      const known = left.length === 1 && left[0]?.endsWith("touch") ? "?shards=2" : "";
      const why = new RegExp(`the bucket ${bucket} has lost ${streams.join(", ")}: restore it from a backup before any front end starts`);
      for (const query of [known, "?shards=2"]) await assertRefused(t, addressOf(cluster, query, bucket), why);
      assert.deepEqual(await streamsOf(t, cluster, bucket), left);
    }
  });

  test("whose first start was cut short is completed by the next", async (t) => {
    for (const missing of [["touch"], ["1", "touch"], ["0", "touch"]]) {
      const bucket = newBucket();
      const { storage } = await open(t, addressOf(cluster, "?shards=2&replicas=1", bucket));
      await storage.close();
      for (const name of missing) await ask(t, cluster, `STREAM.DELETE.SD_${bucket}_${name}`, {});
      const { lines } = await open(t, addressOf(cluster, "", bucket));
      assert.deepEqual(lines.find(({ message }) => message === "a new bucket was made")?.fields, { bucket, shards: 2, replicas: 1 });
      assert.equal((await streamsOf(t, cluster, bucket)).length, 3);
    }
  });

  test("is not taken from somebody else who has a stream of that name, or its subjects", async (t) => {
    for (const [name, subject, why] of [
      ["0", "elsewhere.>", /SD_.*_0 is not one that this version of streamdir made/],
      ["1", "elsewhere.>", /SD_.*_1 is not one that this version of streamdir made/],
      ["touch", "elsewhere.>", /SD_.*_touch is not one that this version of streamdir made/],
      ["other", "sd.*.1.>", /SD_.*_1 can't be made: subjects overlap/],
    ] as const) {
      const bucket = newBucket();
      const stream = `SD_${bucket}_${name}`;
      const subjects = [subject.replace("*", bucket)];
      const made = await ask(t, cluster, `STREAM.CREATE.${stream}`, { name: stream, subjects, num_replicas: 3 });
      assert.equal(made.error, undefined);
      await assertRefused(t, addressOf(cluster, "?shards=2", bucket), why);
      await ask(t, cluster, `STREAM.DELETE.${stream}`, {});
    }
  });

  test("is refused where its stream is told again in another way than it has to be", async (t) => {
    const bucket = newBucket();
    await open(t, addressOf(cluster, "?shards=1", bucket));
    const stream = `SD_${bucket}_0`;
    const { config } = await ask(t, cluster, `STREAM.INFO.${stream}`, {});
    const republish = { src: `sd.${bucket}.0.s.>`, dest: `sdr.${bucket}.0.s.>`, headers_only: true };
    const changed = await ask(t, cluster, `STREAM.UPDATE.${stream}`, { ...(config as object), republish });
    assert.equal(changed.error, undefined);
    await assertRefused(t, addressOf(cluster, "", bucket), /SD_.*_0 has republish .*headers_only/);
  });
});

describe("a limit of appends that is more than the servers take", () => {
  test("is a warning where somebody has set it, and none where it is the default", async (t) => {
    const cluster = await startServers(t, { size: 1 });
    const storage = cluster.storageOf("limits", "?replicas=1&shards=1");
    const message = "appends are limited by what a message of the NATS servers may have";
    for (const [options, level] of [
      [{}, "debug"],
      [{ maxAppendBytes: 2 * 1024 * 1024 }, "warn"],
      [{ maxAppendBytes: 960 * 1024 }, undefined],
    ] as const) {
      const { log, lines } = keptLog();
      const server = await createStreamServer({ storage, port: 0, log, ...options });
      await server.close();
      const told = lines.find((line) => line.message === message);
      assert.equal(told?.level, level);
      if (told !== undefined) assert.deepEqual(told.fields, { maxAppendBytes: 960 * 1024 });
    }
  });
});

describe("a limit of messages that is lowered under a server", () => {
  test("has longer appends answered 413 once the connection is there again", async (t) => {
    const cluster = await startServers(t, { size: 1, more: "max_payload: 4194304" });
    const { log, lines } = keptLog();
    const storage = cluster.storageOf("lowered", "?replicas=1&shards=1");
    const server = await createStreamServer({ storage, port: 0, log });
    t.after(() => server.close());
    const headers = { "Content-Type": "text/plain" };
    const send = (method: string, bytes: number) => fetch(`${server.url}s`, { method, headers, body: "x".repeat(bytes) });
    assert.equal((await send("PUT", 3 * 1024 * 1024)).status, 201);
    await cluster.kill(0);
    const [{ configuration }] = cluster.members as [(typeof cluster.members)[number]]; // as many as were started
    writeFileSync(configuration, readFileSync(configuration, "utf8").replace("4194304", "1048576"));
    await cluster.startServer(0);
    await until(() => lines.some(({ message }) => message === "connected to the NATS cluster again"));
    const refused = await send("POST", 3 * 1024 * 1024);
    assert.equal(refused.status, 413);
    assert.match(await refused.text(), /body-too-large/);
    assert.equal((await send("POST", 960 * 1024)).status, 204);
  });
});

describe("servers that can't be used", () => {
  test("fewer than there are to be copies: the line says what is for one", async (t) => {
    const cluster = await startServers(t, { size: 1 });
    await assertRefused(t, addressOf(cluster), /3 copies need as many servers, \?replicas=1 is for one/);
    await open(t, addressOf(cluster, "?replicas=1&shards=1"));
  });

  test("without JetStream", async (t) => {
    const cluster = await startServers(t, { size: 1, more: "jetstream: disabled" });
    await assertRefused(t, addressOf(cluster, "?replicas=1"), /the NATS server n1 has JetStream turned off/);
  });

  test("of Debian's release, whose compare-and-swap does not hold", async (t) => {
    const cluster = await startServers(t, { size: 1, program: await oldNatsServerPath(), isOld: true });
    await assertRefused(t, addressOf(cluster, "?replicas=1"), /the NATS server n1 has version 2\.\d+\.\d+, and 2\.11 is needed/);
  });

  test("that want another password, or a file that is not there", async (t) => {
    const more = 'authorization { user: "front", password: "right" }';
    const cluster = await startServers(t, { size: 1, more });
    const storageAs = (user: string) => parsed(`nats://${user}${cluster.servers[0] ?? ""}/auth?replicas=1&shards=1`);
    for (const user of ["", "front:wrong@"]) await assertRefused(t, storageAs(user), /authorization/i);
    await open(t, storageAs("front:right@"));
    await assertRefused(t, storageAs(""), /the creds file of --nats-creds can't be read: .*ENOENT/, "/nowhere/at.creds");
  });

  // Each tells of the others, also whoever it refuses.
  test("that want another password, three of them: each is asked once", async (t) => {
    const more = 'authorization { user: "front", password: "right" }';
    const cluster = await startServers(t, { size: 3, more });
    const storageAs = (user: string) => parsed(cluster.storageOf("auth", "?shards=1").replace("//", `//${user}`));
    // From now on they know each other.
    await open(t, storageAs("front:right@"));
    for (const user of ["", "front:wrong@"]) await assertRefused(t, storageAs(user), /authorization/i);
    const refusals = (): string[] => cluster.members.flatMap(({ said }) => said.filter((line) => line.includes("authentication error")));
    await until(() => refusals().length >= 2 * cluster.members.length);
    assert.equal(refusals().length, 2 * cluster.members.length);
  });

  test("that want another password from now on: told once, and once when they take it again", async (t) => {
    const cluster = await startServers(t, { size: 3, more: 'authorization { user: "front", password: "first" }' });
    const address = parsed(cluster.storageOf("auth", "?shards=1").replace("//", "//front:first@"));
    const { storage, lines } = await open(t, address);
    const change = (from: string, to: string): void => {
      for (const [at, { configuration }] of cluster.members.entries()) {
        writeFileSync(configuration, readFileSync(configuration, "utf8").replace(from, to));
        cluster.signal(at, "SIGHUP");
      }
    };
    change("first", "second");
    await until(() => cluster.members.every(({ said }) => said.filter((line) => line.includes("authentication error")).length > 2));
    await health(storage, /^no server of the NATS cluster is connected: Authorization Violation$/);
    change("second", "first");
    await health(storage, null);
    const told = lines.filter(isNotOfWaiting).map(({ level, message }) => `${level} ${message}\n`);
    const outage = "(error no server of the NATS cluster is connected\n)?";
    // Twice where it was quicker at a server that still had the first password.
    const lost = "warn the connection to the NATS cluster is lost\n(warn a NATS server reports a fault\n)?";
    assert.match(
      told.join(""),
      new RegExp(
        `^info a new bucket was made\ninfo the NATS cluster is open\n(${lost}${outage}info connected to the NATS cluster again\n){1,2}$`,
      ),
    );
  });

  test("that are not there, or say nothing", async (t) => {
    const [port = 0] = await freePorts(1);
    await assertRefused(t, parsed(`nats://127.0.0.1:${port}/b`), /no NATS server can be used at 127\.0\.0\.1:\d+: /);
    const silent = createServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
    const sockets: Socket[] = [];
    t.after(() => {
      silent.close();
      for (const socket of sockets) socket.destroy();
    });
    await once(silent, "listening");
    const { port: silentPort } = silent.address() as AddressInfo; // it listens on a port, not on a path
    const command = startStreamdir(t, ["serve", "--port", "0", "--storage", `nats://127.0.0.1:${silentPort}/b`]);
    const { status, stderr } = await command.ended;
    assert.equal(status, 1);
    const [waiting = "", ...ended] = stderr.split("\n");
    assert.match(waiting, /"level":"warn","msg":"waiting for the NATS servers","fault":"no server has answered yet"/);
    assert.match(ended.join("\n"), /^streamdir: Cannot start: no NATS server can be used at .*: timeout\n$/);
  });

  test("one that the connection comes to later is refused, and health says so until there is another", async (t) => {
    const [good, old] = await Promise.all([
      startServers(t, { size: 1 }),
      startServers(t, { size: 1, program: await oldNatsServerPath(), isOld: true }),
    ]);
    const [goodPort = 0, oldPort = 0] = [good.members[0]?.clientPort, old.members[0]?.clientPort];
    const proxy = await SwitchingProxy.start(goodPort);
    t.after(() => proxy.stop());
    const { storage, lines } = await open(t, parsed(`nats://${proxy.address}/b?replicas=1&shards=1`));
    await created(storage, "s", "bytes");
    assert.equal(storage.health().writable, true);
    proxy.leadTo(oldPort);
    await health(storage, /the NATS server n1 has version 2\.\d+\.\d+, and 2\.11 is needed/);
    assert.ok(lines.some(({ level, message }) => level === "error" && message === "a NATS server can't be used"));
    await assert.rejects(async () => storage.load("s"));
    proxy.leadTo(goodPort);
    await health(storage, null);
    assert.equal((await loaded(storage, "s")).state.tail, 5);
  });

  test("one that the connection comes to later is left for another that can be used", { timeout: 60_000 }, async (t) => {
    const [good, old] = await Promise.all([
      startServers(t, { size: 1 }),
      startServers(t, { size: 1, program: await oldNatsServerPath(), isOld: true }),
    ]);
    const [goodPort = 0, oldPort = 0] = [good.members[0]?.clientPort, old.members[0]?.clientPort];
    const [nobodysPort = 0] = await freePorts(1);
    const [first, second] = [await SwitchingProxy.start(goodPort), await SwitchingProxy.start(goodPort)];
    t.after(() => Promise.all([first.stop(), second.stop()]));
    const { storage } = await open(t, parsed(`nats://${first.address},${second.address}/b?replicas=1&shards=1`));
    await created(storage, "s", "bytes");
    second.leadTo(nobodysPort);
    first.leadTo(oldPort);
    await health(storage, /the NATS server n1 has version 2\.\d+\.\d+, and 2\.11 is needed/);
    second.leadTo(goodPort);
    await health(storage, null);
    assert.equal((await loaded(storage, "s")).state.tail, 5);
  });
});

/** Waits until health has a reason that matches; until it has none where that is `null`. */
async function health(storage: ClusterStorage, reason: RegExp | null): Promise<void> {
  const holds = (): boolean => {
    const { writable, reason: now } = storage.health();
    return reason === null ? writable : now !== null && reason.test(now);
  };
  await until(holds);
}
