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
const CUT_MS = 14_000;

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
      const held = pause(CUT_MS);
      const refusedMs = await load.fronts.health(0, 503);
      await load.written();
      const foundMs = await load.fronts.health(0, 200);
      context.diagnostic(`/health of the front end on it: 503 after ${seconds(refusedMs)}, 200 another ${seconds(foundMs)} later`);
      assert.ok(refusedMs < UNHEALTHY_WITHIN_MS);
      // Its leaders go on calling themselves so.
      await held;
      proxies.heal(leader);
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
