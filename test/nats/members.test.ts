// What docs/cluster.md says of NATS servers that are replaced, removed and added.
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { connect } from "@nats-io/transport-node";
import { tempDir } from "../helpers/temp-dir.js";
import { chainsOf } from "./chains.js";
import { startFrontEnd, startTwo } from "./front-end.js";
import { pause } from "./load/fronts.js";
import { NatsCluster, type NatsClusterOptions } from "./nats-cluster.js";
import { RawCluster, shardsOf } from "./raw-cluster.js";
import { underLoad } from "./under-load.js";

const BUCKET = "members";
const SHARDS = shardsOf(BUCKET, 1);
const STREAMS = [...SHARDS, `SD_${BUCKET}_touch`];
const ADMIN = { user: "admin", pass: "secret" };
/** An account of its own for those who run the servers, as in docs/cluster.md; others need no password here. */
const ACCOUNTS = `accounts {
  $SYS: { users: [ { user: ${ADMIN.user}, password: ${ADMIN.pass} } ] }
  A: { jetstream: enabled, users: [ { user: a, password: a } ] }
}
no_auth_user: a`;

/** What the API says of who has a JetStream stream. */
interface Placement {
  readonly leader?: string;
  readonly replicas?: readonly { readonly name: string; readonly current?: boolean }[];
}

async function start(t: TestContext, options: NatsClusterOptions): Promise<{ readonly cluster: NatsCluster; readonly raw: RawCluster }> {
  const cluster = await NatsCluster.start(options);
  t.after(() => cluster.stop());
  const raw = await RawCluster.connect(cluster.servers);
  t.after(() => raw.close());
  return { cluster, raw };
}

/** The servers that have a stream, once these are so many and each has all of it. */
async function holdersOf(raw: RawCluster, stream: string, count: number): Promise<readonly string[]> {
  for (;;) {
    const placement = (await raw.call(`STREAM.INFO.${stream}`, {}))?.["cluster"] as Placement | undefined; // as the API has it
    const { leader, replicas = [] } = placement ?? {};
    const isWhole = leader !== undefined && replicas.every(({ current }) => current === true);
    if (isWhole && replicas.length === count - 1) return [leader, ...replicas.map(({ name }) => name)].sort();
    await pause(100);
  }
}

async function assertUnbroken(raw: RawCluster): Promise<void> {
  const { broken } = await chainsOf(SHARDS.map((shard) => raw.messages(shard, `sd.${BUCKET}.*.s.>`)));
  assert.deepEqual(broken, []);
}

test("a server that comes back under its name without its disk gets all again, and another may die then", async (t) => {
  const folder = tempDir();
  const { cluster, raw } = await start(t, { size: 3, storeOf: (at) => join(folder, String(at)) });
  const fronts = await startTwo(t, cluster.storageOf(BUCKET, "?shards=1"));
  await underLoad(t, { cluster, bucket: BUCKET, fronts }, async (load) => {
    await cluster.kill(2);
    await rm(join(folder, "2"), { recursive: true });
    await load.written(20);
    await cluster.startServer(2);
    for (const stream of STREAMS) assert.deepEqual(await holdersOf(raw, stream, 3), ["n1", "n2", "n3"]);
    await cluster.kill(1);
  });
  await assertUnbroken(raw);
});

test("a server that is removed for good gives its copies to another", async (t) => {
  const { cluster, raw } = await start(t, { size: 4, more: ACCOUNTS });
  const admin = await connect({ servers: [...cluster.servers], ...ADMIN });
  t.after(() => admin.close());
  const fronts = await startTwo(t, cluster.storageOf(BUCKET, "?shards=1"));
  await underLoad(t, { cluster, bucket: BUCKET, fronts }, async (load) => {
    const holders = await holdersOf(raw, SHARDS[0] ?? "", 3);
    const lost = holders.find((name) => name !== "n1") ?? assert.fail("others have it, too");
    await cluster.kill(cluster.placeOf(lost));
    await load.written(20);
    let removed = { success: false };
    while (!removed.success) {
      // Without a leader of the meta group nobody hears it.
      const asked = admin.request("$JS.API.SERVER.REMOVE", JSON.stringify({ peer: lost }), { timeout: 2000 });
      const answer = await asked.catch(() => null);
      if (answer === null) await pause(250);
      else removed = answer.json();
    }
    const rest = ["n1", "n2", "n3", "n4"].filter((name) => name !== lost);
    for (const stream of STREAMS) assert.deepEqual(await holdersOf(raw, stream, 3), rest);
  });
  await assertUnbroken(raw);
});

test("three copies become five while front ends serve, and two servers may die then", async (t) => {
  const { cluster, raw } = await start(t, { size: 5 });
  const fronts = await startTwo(t, cluster.storageOf(BUCKET, "?shards=1"));
  await underLoad(t, { cluster, bucket: BUCKET, fronts }, async (load) => {
    for (const stream of STREAMS) {
      const config = (await raw.call(`STREAM.INFO.${stream}`, {}))?.["config"];
      assert.ok(typeof config === "object");
      const { error = null } = (await raw.call(`STREAM.UPDATE.${stream}`, { ...config, num_replicas: 5 })) ?? {};
      assert.equal(error, null);
    }
    for (const stream of STREAMS) assert.deepEqual(await holdersOf(raw, stream, 5), ["n1", "n2", "n3", "n4", "n5"]);
    await load.written(20);
    await startFrontEnd(t, cluster.storageOf(BUCKET, "?replicas=5"));
    for (const at of [1, 2]) await cluster.kill(at);
  });
  await assertUnbroken(raw);
});
