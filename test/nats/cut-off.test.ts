import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { chainsOf } from "./chains.js";
import { startFrontEnd } from "./front-end.js";
import { pause } from "./load/fronts.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster, shardsOf } from "./raw-cluster.js";
import { RouteProxies } from "./route-proxies.js";
import { seconds, underLoad, UNHEALTHY_WITHIN_MS } from "./under-load.js";

const BUCKET = "cut";
const CUT_MS = 20_000;

test("a server that is cut off from the others", async (suite) => {
  const proxies = await RouteProxies.open(3);
  suite.after(() => proxies.close());
  const cluster = await NatsCluster.start({ size: 3, routes: proxies.routes });
  suite.after(() => cluster.stop());
  const raw = await RawCluster.connect(cluster.servers);
  suite.after(() => raw.close());
  const shards = shardsOf(BUCKET);
  await makeBucket(suite, cluster);

  await suite.test("server cut off, with a front end on it", async (context) => {
    // The one front end has its connection to the server that is cut off, the other has it to another.
    const leader = cluster.placeOf(await raw.leaderOfMost(shards));
    const servers = [leader, (leader + 1) % 3].map((at) => cluster.servers[at] ?? "");
    const fronts = await Promise.all(servers.map((server) => startFrontEnd(context, `nats://${server}/${BUCKET}`)));
    assert.ok(proxies.connectionsOf(leader) >= 2, "the servers are connected through the proxies");
    await underLoad(context, { cluster, bucket: BUCKET, fronts }, async (load) => {
      proxies.cut(leader);
      const healed = pause(CUT_MS).then(() => proxies.heal(leader));
      const refusedMs = await load.fronts.health(0, 503);
      context.diagnostic(`/health of the front end on it is 503 after ${seconds(refusedMs)}`);
      assert.ok(refusedMs < UNHEALTHY_WITHIN_MS);
      await fronts[0]?.process?.stderrLine(/sees no majority of the others/);
      await load.written();
      context.diagnostic(`the front end on it is healthy again after ${seconds(await load.fronts.health(0, 200))}`);
      await healed;
    });
  });

  await suite.test("each message follows the one that its publisher expected", async (context) => {
    const filter = `sd.${BUCKET}.*.s.>`;
    const { messages, broken } = await chainsOf(shards.map((shard) => raw.messages(shard, filter)));
    context.diagnostic(`${messages} messages, ${broken.length} broken chains`);
    assert.deepEqual(broken, []);
  });
});

/** A front end makes the bucket, and ends: whoever leads its shards is known from then on. */
async function makeBucket(suite: TestContext, cluster: NatsCluster): Promise<void> {
  const { process } = await startFrontEnd(suite, cluster.storageOf(BUCKET));
  process?.kill("SIGTERM");
  await process?.ended;
}
