import assert from "node:assert/strict";
import { statfsSync } from "node:fs";
import test from "node:test";
import { fillDisk, lacksMounts, smallDisk } from "../helpers/machine.js";
import { chainsOf } from "./chains.js";
import { startTwo } from "./front-end.js";
import { Fronts, pause } from "./load/fronts.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster, shardsOf } from "./raw-cluster.js";
import { underLoad } from "./under-load.js";

const BUCKET = "full";
const DISK_MIB = 64;
/** What is left on the disk when the load begins to fill it. */
const LEFT_BYTES = 256 * 1024;
/** An election may come in between, and then another. */
const CAUGHT_UP_WITHIN_MS = 120_000;

test("a server whose disk is full", { skip: lacksMounts }, async (suite) => {
  const disk = smallDisk(suite, DISK_MIB);
  const cluster = await NatsCluster.start({ size: 3, storeOf: (at) => (at === 0 ? disk : null) });
  suite.after(() => cluster.stop());
  const raw = await RawCluster.connect(cluster.servers);
  suite.after(() => raw.close());
  const fronts = await startTwo(suite, cluster.storageOf(BUCKET));
  const shards = shardsOf(BUCKET);

  await suite.test("disk of one server full", async (context) => {
    await underLoad(context, { cluster, bucket: BUCKET, fronts }, async (load) => {
      const empty = fillDisk(disk, LEFT_BYTES);
      while (statfsSync(disk).bavail > 0) await pause(20);
      await load.written(20);
      empty();
    });
    const said = cluster.members[0]?.said.filter((line) => line.includes("[ERR]") && !line.includes("route"));
    context.diagnostic(`the server said: ${said?.[0]?.slice(0, 200)}`);
  });

  await suite.test("the server has all again once it has room and is started again", async (context) => {
    await cluster.kill(0);
    await cluster.startServer(0);
    const sinceMs = performance.now();
    for (let behind = await lagOf(raw, shards); behind !== null; behind = await lagOf(raw, shards)) {
      assert.ok(performance.now() - sinceMs < CAUGHT_UP_WITHIN_MS, behind);
      await pause(100);
    }
    context.diagnostic(`after ${((performance.now() - sinceMs) / 1000).toFixed(1)} s`);
    const { messages, broken } = await chainsOf(shards.map((shard) => raw.messages(shard, `sd.${BUCKET}.*.s.>`)));
    context.diagnostic(`${messages} messages, ${broken.length} broken chains`);
    assert.deepEqual(broken, []);
  });
});

/** What is said of a JetStream stream of which a server lacks something; `null` where each has all. */
async function lagOf(raw: RawCluster, streams: readonly string[]): Promise<string | null> {
  for (const stream of streams) {
    const cluster = (await raw.call(`STREAM.INFO.${stream}`, {}))?.["cluster"];
    const replicas: unknown = typeof cluster === "object" && cluster !== null ? Reflect.get(cluster, "replicas") : null;
    const lag = `${stream}: ${JSON.stringify(cluster)}`;
    if (!Array.isArray(replicas) || replicas.length !== 2) return lag;
    if (!replicas.every(({ current }: { readonly current?: boolean }) => current === true)) return lag; // as the API has it
  }
  return null;
}

test("a JetStream stream that has reached its limit", async (context) => {
  const cluster = await NatsCluster.start({ size: 3 });
  context.after(() => cluster.stop());
  const raw = await RawCluster.connect(cluster.servers);
  context.after(() => raw.close());
  const frontEnds = await startTwo(context, cluster.storageOf("limit", "?shards=1"));
  const fronts = new Fronts(frontEnds.map(({ url }) => url));
  context.after(async () => fronts.close());
  const headers = { "Content-Type": "text/plain" };
  const producer = (seq: number): Record<string, string> => ({
    ...headers,
    "Producer-Id": "p",
    "Producer-Epoch": "0",
    "Producer-Seq": String(seq),
  });
  const body = `${"x".repeat(9999)}\n`;
  assert.equal((await fronts.insist(0, "PUT", "s", { headers })).status, 201);
  await limit(raw, 500_000);
  let stored = 0;
  let answer = await fronts.insist(0, "POST", "s", { headers: producer(0), body });
  while (answer.status === 200) {
    stored += 1;
    answer = await fronts.insist(stored, "POST", "s", { headers: producer(stored), body });
  }
  assert.equal(answer.status, 507, answer.body.toString());
  assert.match(answer.body.toString(), /storage-full/);
  assert.ok(stored > 30, `${stored}`);
  for (const front of [0, 1]) {
    const { body: text } = await fronts.insist(front, "GET", "s");
    assert.equal(text.toString(), body.repeat(stored), "what was acknowledged can be read");
    assert.equal((await fronts.insist(front, "GET", "../../health")).status, 200);
  }
  await limit(raw, -1);
  const again = await fronts.insist(1, "POST", "s", { headers: producer(stored), body });
  assert.equal(again.status, 200);
  assert.equal((await fronts.insist(0, "GET", "s")).body.length, body.length * (stored + 1));
  context.diagnostic(`${stored} stored, then 507, and 200 once the limit is raised`);
});

/** Changes how much the one shard may hold, as an operator does. */
async function limit(raw: RawCluster, maxBytes: number): Promise<void> {
  const config = (await raw.call("STREAM.INFO.SD_limit_0", {}))?.["config"];
  const answer = await raw.call("STREAM.UPDATE.SD_limit_0", { ...(config as object), max_bytes: maxBytes }); // it was there
  assert.equal(answer?.["error"], undefined, JSON.stringify(answer));
}
