import { after, before, describe, type TestContext } from "node:test";
import { systemClock } from "../../src/ops/clock.js";
import type { ClusterStorage } from "../../src/storage/nats/cluster-storage.js";
import { openCluster } from "../../src/storage/nats/open-cluster.js";
import type { StorageUnderTest } from "../contract/storage-under-test.js";
import { storageContract } from "../contract/storage.contract.js";
import { keptLog } from "../helpers/engine.js";
import { addressOf } from "./buckets.js";
import { NatsCluster } from "./nats-cluster.js";

for (const [size, query] of [
  [1, "?replicas=1&shards=1"],
  [3, "?replicas=3&shards=2"],
] as const)
  describe(`${size} of NATS's servers`, () => {
    let cluster: NatsCluster;
    before(async () => {
      cluster = await NatsCluster.start({ size });
    });
    after(() => cluster.stop());
    storageContract(`the cluster engine with ${query}`, (t) => open(t, cluster, query));
  });

/** An engine on a bucket of its own. */
async function open(t: TestContext, cluster: NatsCluster, query: string): Promise<StorageUnderTest> {
  const address = addressOf(cluster, query);
  const begin = async (): Promise<ClusterStorage> => {
    const given = { address, credsFile: "", timeoutMs: 30_000, clock: systemClock(), log: keptLog().log };
    const storage = await openCluster(given);
    t.after(() => storage.close());
    return storage;
  };
  return { isShared: true, storage: await begin(), restart: begin };
}
