import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { chainsOf } from "./chains.js";
import { startFrontEnd, startTwo } from "./front-end.js";
import { Fronts, pause } from "./load/fronts.js";
import type { Load } from "./load/load.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster, shardsOf } from "./raw-cluster.js";
import { SECONDS, seconds, underLoad, UNHEALTHY_WITHIN_MS } from "./under-load.js";

const BUCKET = "faults";
const FROZEN_MS = 14_000;

test("servers and front ends that are killed or frozen", async (suite) => {
  const cluster = await NatsCluster.start({ size: 3 });
  suite.after(() => cluster.stop());
  const raw = await RawCluster.connect(cluster.servers);
  suite.after(() => raw.close());
  const fronts = [...(await startTwo(suite, cluster.storageOf(BUCKET)))];
  const under = (fault: string, doIt: (load: Load, context: TestContext) => Promise<void>): Promise<void> =>
    suite.test(fault, (context) => underLoad(context, { cluster, bucket: BUCKET, fronts }, (load) => doIt(load, context)));

  await under("leader killed -9, twice", async (load) => {
    for (let kill = 0; kill < 2; kill += 1) {
      const leader = cluster.placeOf(await raw.leaderOfMost(shardsOf(BUCKET)));
      await cluster.kill(leader);
      await load.written();
      await cluster.startServer(leader);
      await load.written();
      await pause(SECONDS * 1000);
    }
  });

  await under("front end killed -9", async (load) => {
    const [first] = fronts;
    assert.ok(first?.process);
    const port = Number(new URL(first.url).port);
    first.process.kill("SIGKILL");
    await first.process.ended;
    await load.written();
    fronts[0] = await startFrontEnd(suite, cluster.storageOf(BUCKET), { port });
  });

  await under("all three servers killed -9", async () => {
    await Promise.all([0, 1, 2].map((at) => cluster.kill(at)));
    await Promise.all([0, 1, 2].map((at) => cluster.startServer(at)));
  });

  await suite.test("/health while two of three servers are gone", async (context) => {
    const asking = new Fronts(fronts.map(({ url }) => url));
    await Promise.all([0, 1].map((at) => cluster.kill(at)));
    const refusedMs = await Promise.all(fronts.map((_, at) => asking.health(at, 503, /no leader/)));
    await Promise.all([0, 1].map((at) => cluster.startServer(at)));
    const healthyMs = await Promise.all(fronts.map((_, at) => asking.health(at, 200)));
    context.diagnostic(`503 after ${refusedMs.map(seconds).join(" and ")}, 200 again after ${healthyMs.map(seconds).join(" and ")}`);
    assert.ok(Math.max(...refusedMs) < UNHEALTHY_WITHIN_MS);
    asking.close();
  });

  await under("leader frozen for 14 s", async (load) => {
    const leader = cluster.placeOf(await raw.leaderOfMost(shardsOf(BUCKET)));
    cluster.signal(leader, "SIGSTOP");
    const woken = pause(FROZEN_MS).then(() => cluster.signal(leader, "SIGCONT"));
    await load.written();
    await woken;
  });

  await suite.test("each message follows the one that its publisher expected", async (context) => {
    const filter = `sd.${BUCKET}.*.s.>`;
    const { messages, broken } = await chainsOf(shardsOf(BUCKET).map((shard) => raw.messages(shard, filter)));
    context.diagnostic(`${messages} messages, ${broken.length} broken chains`);
    assert.deepEqual(broken, []);
  });
});
