import type { TestContext } from "node:test";
import { systemClock } from "../../../src/ops/clock.js";
import { ClusterStorage } from "../../../src/storage/nats/cluster-storage.js";
import { Subjects } from "../../../src/storage/nats/log/subjects.js";
import type { StorageUnderTest } from "../../contract/storage-under-test.js";
import { storageContract } from "../../contract/storage.contract.js";
import { keptLog } from "../../helpers/engine.js";
import { MemoryCluster, MemoryLog } from "../../helpers/memory-log.js";

storageContract("the cluster engine on a log in memory", open);

function open(t: TestContext): Promise<StorageUnderTest> {
  const cluster = new MemoryCluster();
  const begin = (): ClusterStorage => {
    const clock = systemClock();
    const log = new MemoryLog(cluster, { ...clock, after: (_, run) => (setImmediate(run), { cancel: () => undefined }) }, Math.random);
    const subjects = new Subjects("test", 2);
    const storage = new ClusterStorage({ log, subjects, clock, notices: keptLog().log, cacheBytes: 64 * 1024, timeoutMs: 30_000 });
    t.after(() => storage.close());
    return storage;
  };
  return Promise.resolve({ isShared: true, storage: begin(), restart: () => Promise.resolve(begin()) });
}
