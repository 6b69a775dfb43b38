// What front ends that serve say where somebody deletes or purges a JetStream stream of theirs.
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { systemClock } from "../../src/ops/clock.js";
import type { ClusterStorage } from "../../src/storage/nats/cluster-storage.js";
import { openCluster } from "../../src/storage/nats/open-cluster.js";
import { created, keptLog, type LogLine } from "../helpers/engine.js";
import { until } from "../helpers/until.js";
import { addressOf } from "./buckets.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster } from "./raw-cluster.js";

let cluster: NatsCluster;
before(async () => {
  cluster = await NatsCluster.start({ size: 3 });
});
after(() => cluster.stop());

interface Opened {
  readonly raw: RawCluster;
  readonly storage: ClusterStorage;
  readonly lines: readonly LogLine[];
  /** Waits until the front end has asked so many times more about its shard. */
  readonly asked: (times: number) => Promise<void>;
}

/** Opens a bucket of one shard, with a stream and the reserve. */
async function open(t: TestContext, bucket: string): Promise<Opened> {
  const { log, lines } = keptLog();
  const address = addressOf(cluster, "?shards=1", bucket);
  const storage = await openCluster({ address, credsFile: "", timeoutMs: 30_000, clock: systemClock(), log });
  t.after(() => storage.close());
  await created(storage, "s", "bytes");
  for await (const { name } of storage.list()) assert.equal(name, "s");
  const raw = await RawCluster.connect(cluster.servers);
  t.after(() => raw.close());
  let count = 0;
  raw.connection.subscribe(`$JS.API.STREAM.INFO.SD_${bucket}_0`, { callback: () => void (count += 1) });
  const asked = async (times: number): Promise<void> => {
    const enough = count + times;
    await until(() => count >= enough);
  };
  // The one that was on its way may be of before.
  await asked(2);
  return { raw, storage, lines, asked };
}

function errorsIn(lines: readonly LogLine[]): readonly string[] {
  return lines.filter(({ level }) => level === "error").map(({ message }) => message);
}

test("a JetStream stream that is deleted is told to be gone, once, and no server is left for it", { timeout: 120_000 }, async (t) => {
  const { raw, storage, lines, asked } = await open(t, "deleted");
  const why = "the NATS servers have no SD_deleted_0: restore it from a backup before any front end starts";
  assert.deepEqual((await raw.call("STREAM.DELETE.SD_deleted_0", {}))?.["success"], true);
  await until(() => storage.health().reason === why);
  // Longer than one that sees no majority is waited for.
  await asked(10);
  assert.deepEqual(errorsIn(lines), [why]);
  assert.equal(storage.health().reason, why);
  assert.ok(lines.every(({ message }) => !message.includes("trying another")));
});

test("a JetStream stream that is deleted and made anew is told of", { timeout: 120_000 }, async (t) => {
  const { raw, lines, asked } = await open(t, "anew");
  const config = (await raw.call("STREAM.INFO.SD_anew_0", {}))?.["config"];
  assert.ok(typeof config === "object" && config !== null);
  await raw.call("STREAM.DELETE.SD_anew_0", {});
  assert.equal((await raw.call("STREAM.CREATE.SD_anew_0", config))?.["error"], undefined);
  await until(() => errorsIn(lines).length > 0);
  await asked(3);
  assert.deepEqual(errorsIn(lines), ["SD_anew_0 was deleted and made anew by somebody else"]);
});

test("a JetStream stream of which all is purged is told of", { timeout: 120_000 }, async (t) => {
  const { raw, lines, asked } = await open(t, "purged");
  await raw.call("STREAM.PURGE.SD_purged_0", {});
  await until(() => errorsIn(lines).length > 0);
  await asked(3);
  assert.deepEqual(errorsIn(lines), ["all messages of SD_purged_0 were purged by somebody else"]);
});
