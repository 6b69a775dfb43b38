import assert from "node:assert/strict";
import test from "node:test";
import { systemClock, type Clock } from "../../src/ops/clock.js";
import { chainsOf } from "./chains.js";
import { faultyClient } from "./faulty-client.js";
import { serveHere, startTwo } from "./front-end.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster, shardsOf } from "./raw-cluster.js";
import { underLoad } from "./under-load.js";

const BUCKET = "answers";
const APART_MS = 5000;

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
    await underLoad(context, { cluster, bucket: BUCKET, fronts }, async () => {});
  });

  await suite.test("each message follows the one that its publisher expected", async (context) => {
    const filter = `sd.${BUCKET}.*.s.>`;
    const { messages, broken } = await chainsOf(shardsOf(BUCKET).map((shard) => raw.messages(shard, filter)));
    context.diagnostic(`${messages} messages, ${broken.length} broken chains`);
    assert.deepEqual(broken, []);
  });
});

/** The system's clock, set forward. */
function ahead(byMs: number): Clock {
  const clock = systemClock();
  return { nowMs: () => clock.nowMs() + byMs, after: (delayMs, run) => clock.after(delayMs, run) };
}
