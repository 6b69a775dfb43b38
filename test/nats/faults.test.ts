import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { chainsOf } from "./chains.js";
import { startFrontEnd, startTwo, type FrontEnd } from "./front-end.js";
import { pause } from "./load/fronts.js";
import { Load, LONGEST_PAUSE_MS, type LoadResult } from "./load/load.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster, shardsOf } from "./raw-cluster.js";

/** How long producers write before and after a fault; more with `STREAMDIR_FAULT_SECONDS`. */
const SECONDS = Number(process.env["STREAMDIR_FAULT_SECONDS"] ?? 2);
const BUCKET = "faults";
const FROZEN_MS = 14_000;

/** Three servers, two front ends and a load. */
interface World {
  readonly cluster: NatsCluster;
  readonly raw: RawCluster;
  readonly fronts: readonly FrontEnd[];
  readonly load: Load;
}

test("faults on three servers under load", async (suite) => {
  const cluster = await NatsCluster.start({ size: 3 });
  suite.after(() => cluster.stop());
  const raw = await RawCluster.connect(cluster.servers);
  suite.after(() => raw.close());
  const fronts = [...(await startTwo(suite, cluster.storageOf(BUCKET)))];
  let loads = 0;

  /** Runs a fault under a load, and looks at what the load was told. */
  const under = (fault: string, doIt: (world: World, context: TestContext) => Promise<void>): Promise<void> =>
    suite.test(fault, async (context) => {
      loads += 1;
      const load = new Load(
        fronts.map(({ url }) => url),
        { prefix: `l${loads}/` },
      );
      context.after(() => load.stop());
      await load.start();
      await pause(SECONDS * 1000);
      await doIt({ cluster, raw, fronts, load }, context);
      await load.written();
      await pause(SECONDS * 1000);
      const result = await load.finish();
      context.diagnostic(Load.summaryOf(fault, result));
      assertRight(load, result);
    });

  await under("nothing happens", async () => {});

  await under("the server that leads most shards is killed with -9, twice", async ({ load }) => {
    for (let kill = 0; kill < 2; kill += 1) {
      const leader = cluster.placeOf(await raw.leaderOfMost(shardsOf(BUCKET)));
      await cluster.kill(leader);
      await load.written();
      await cluster.startServer(leader);
      await load.written();
      await pause(SECONDS * 1000);
    }
  });

  await under("a front end is killed with -9", async ({ load }, context) => {
    const [first] = fronts;
    assert.ok(first?.process);
    const port = Number(new URL(first.url).port);
    first.process.kill("SIGKILL");
    await first.process.ended;
    await load.written();
    fronts[0] = await startFrontEnd(suite, cluster.storageOf(BUCKET), { port });
    context.diagnostic(`started again at ${fronts[0].url}`);
  });

  await under("all three servers are killed with -9", async () => {
    await Promise.all([0, 1, 2].map((at) => cluster.kill(at)));
    await Promise.all([0, 1, 2].map((at) => cluster.startServer(at)));
  });

  await under("the server that leads most shards is frozen and woken", async ({ load }) => {
    const leader = cluster.placeOf(await raw.leaderOfMost(shardsOf(BUCKET)));
    cluster.signal(leader, "SIGSTOP");
    const woken = pause(FROZEN_MS).then(() => cluster.signal(leader, "SIGCONT"));
    await load.written();
    await woken;
  });

  await suite.test("each message follows the one that its publisher expected", async (context) => {
    const { messages, broken } = await chainsOf(
      shardsOf(BUCKET).map((shard) => raw.messages(shard, `sd.${BUCKET}.*.s.>`)),
    );
    context.diagnostic(`${messages} messages, ${broken.length} broken chains`);
    assert.deepEqual(broken, []);
  });
});

function assertRight(load: Load, { lost, twice, longestPauseMs }: LoadResult): void {
  assert.deepEqual(load.ledger.violations, []);
  assert.equal(lost, 0);
  assert.equal(twice, 0);
  assert.ok(longestPauseMs < LONGEST_PAUSE_MS, `a stream was not written to for ${longestPauseMs} ms`);
}
