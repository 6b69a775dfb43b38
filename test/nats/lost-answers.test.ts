import assert from "node:assert/strict";
import test from "node:test";
import { systemClock, type Clock } from "../../src/ops/clock.js";
import { chainsOf } from "./chains.js";
import { faultyClient } from "./faulty-client.js";
import { serveHere, startTwo } from "./front-end.js";
import { pause, type Fronts } from "./load/fronts.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster, shardsOf } from "./raw-cluster.js";
import { seconds, underLoad } from "./under-load.js";

const BUCKET = "answers";
const APART_MS = 5000;
const TTL_SECONDS = 8;
const LOOKED_AT_WITHIN_MS = 2000;

test("answers and hints that are lost, on servers that sync each message", async (suite) => {
  const cluster = await NatsCluster.start({ size: 3, syncInterval: "always" });
  suite.after(() => cluster.stop());
  const raw = await RawCluster.connect(cluster.servers);
  suite.after(() => raw.close());
  const storage = cluster.storageOf(BUCKET);

  await suite.test("acks dropped, one of ten", async (context) => {
    const fronts = await startTwo(context, storage, faultyClient({ droppedAcks: 10 }));
    await underLoad(context, { cluster, bucket: BUCKET, fronts }, async () => {});
  });

  await suite.test("hints dropped, doubled and delayed", async (context) => {
    const fronts = await startTwo(context, storage, faultyClient({ spoiltHints: true }));
    await underLoad(context, { cluster, bucket: BUCKET, fronts }, async () => {});
  });

  await suite.test("leader killed -9 with sync_interval always", async (context) => {
    const fronts = await startTwo(context, storage);
    await underLoad(context, { cluster, bucket: BUCKET, fronts }, async (load) => {
      const leader = cluster.placeOf(await raw.leaderOfMost(shardsOf(BUCKET)));
      await cluster.kill(leader);
      await load.written();
      await cluster.startServer(leader);
    });
  });

  await suite.test("front ends with clocks 5 s apart", async (context) => {
    const fronts = [await serveHere(context, storage), await serveHere(context, storage, { clock: ahead(APART_MS) })];
    await underLoad(context, { cluster, bucket: BUCKET, fronts }, async (load) => {
      const livedMs = await lifeOf(load.fronts, "short");
      context.diagnostic(`a stream of ${TTL_SECONDS} s lived for ${seconds(livedMs)}`);
      const offMs = Math.abs(livedMs - TTL_SECONDS * 1000);
      assert.ok(offMs < APART_MS + LOOKED_AT_WITHIN_MS, "it is wrong by no more than the clocks are");
    });
  });

  await suite.test("each message follows the one that its publisher expected", async (context) => {
    const filter = `sd.${BUCKET}.*.s.>`;
    const { messages, broken } = await chainsOf(shardsOf(BUCKET).map((shard) => raw.messages(shard, filter)));
    context.diagnostic(`${messages} messages, ${broken.length} broken chains`);
    assert.deepEqual(broken, []);
  });
});

/** How long a stream that nobody reads is there, as both front ends say; HEAD is no read. */
async function lifeOf(fronts: Fronts, name: string): Promise<number> {
  const headers = { "Content-Type": "text/plain", "Stream-TTL": String(TTL_SECONDS) };
  const bornAtMs = performance.now();
  assert.equal((await fronts.insist(0, "PUT", name, { headers })).status, 201);
  for (;;) {
    const answers = await Promise.all([0, 1].map((front) => fronts.insist(front, "HEAD", name)));
    if (answers.every(({ status }) => status === 404)) return performance.now() - bornAtMs;
    await pause(50);
  }
}

/** The system's clock, set forward. */
function ahead(byMs: number): Clock {
  const clock = systemClock();
  return { nowMs: () => clock.nowMs() + byMs, after: (delayMs, run) => clock.after(delayMs, run) };
}
