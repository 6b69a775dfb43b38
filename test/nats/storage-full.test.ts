import assert from "node:assert/strict";
import { after, before, describe, test, type TestContext } from "node:test";
import type { ServerOptions } from "../../src/server.js";
import { keptLog } from "../helpers/engine.js";
import { newBucket } from "./buckets.js";
import { ForwardClock, startFrontEnds, type FrontEnd } from "./front-ends.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster } from "./raw-cluster.js";

const TEXT = { "Content-Type": "text/plain" };
const BODY = "x".repeat(10_000);
/** Too little for any message. */
const LEFT_BYTES = 16;
const HOLDS_WITHIN_MS = 30_000;

/** Asks until it holds. */
async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const sinceMs = performance.now();
  while (!(await holds())) assert.ok(performance.now() - sinceMs < HOLDS_WITHIN_MS, `${holds.toString()} has not come true`);
}

describe("a shard that has reached its limit", { timeout: 120_000 }, () => {
  let cluster: NatsCluster;
  let raw: RawCluster;
  before(async () => {
    cluster = await NatsCluster.start({ size: 1 });
    raw = await RawCluster.connect(cluster.servers);
  });
  after(async () => {
    await raw.close();
    await cluster.stop();
  });

  /** How a shard's stream is: its settings and what is in it. */
  async function infoOf(
    stream: string,
    subject = ">",
  ): Promise<{ config: object; state: { bytes: number; subjects?: Record<string, number> } }> {
    const info = await raw.call(`STREAM.INFO.${stream}`, { subjects_filter: subject });
    return info as unknown as Awaited<ReturnType<typeof infoOf>>; // as the API has it
  }

  /** How many messages hold room in the bucket's one shard. */
  async function reserveOf(bucket: string): Promise<number> {
    const subject = `sd.${bucket}.0.r`;
    return (await infoOf(`SD_${bucket}_0`, subject)).state.subjects?.[subject] ?? 0;
  }

  /** Lets the shard grow by so many bytes, as an operator does; without end where that is `null`. */
  async function allow(bucket: string, moreBytes: number | null): Promise<void> {
    const { config, state } = await infoOf(`SD_${bucket}_0`);
    const maxBytes = moreBytes === null ? -1 : state.bytes + moreBytes;
    const answer = await raw.call(`STREAM.UPDATE.SD_${bucket}_0`, { ...config, max_bytes: maxBytes });
    assert.equal(answer?.["error"], undefined, JSON.stringify(answer));
  }

  /** Front ends on a new bucket of one shard, once that holds room in reserve. */
  async function begin(
    t: TestContext,
    count: number,
    options: Partial<ServerOptions> = {},
  ): Promise<{ bucket: string; all: readonly FrontEnd[] }> {
    const bucket = newBucket();
    const all = await startFrontEnds(t, cluster, count, { bucket, query: "?replicas=1&shards=1", ...options });
    await eventually(async () => (await reserveOf(bucket)) === 16);
    return { bucket, all };
  }

  test("refuses appends and creations with 507, takes deletions, and then appends again", async (t) => {
    const { bucket, all } = await begin(t, 2);
    const [one, other] = all as [FrontEnd, FrontEnd]; // as many as were asked for
    await one.expect(201, "PUT", "kept", { headers: TEXT, body: "first" });
    for (let index = 0; index < 20; index += 1) await one.expect(201, "PUT", `s${index}`, { headers: TEXT, body: BODY });
    await allow(bucket, LEFT_BYTES);
    for (const front of all) {
      const refused = await front.expect(507, "POST", "kept", { headers: TEXT, body: "second" });
      assert.match(refused.text, /storage-full/);
      assert.notEqual(refused.headers.get("retry-after"), null);
      await front.expect(507, "PUT", "new", { headers: TEXT });
      assert.equal((await front.expect(200, "GET", "kept")).text, "first");
    }
    await one.expect(204, "DELETE", "s0");
    await eventually(async () => (await reserveOf(bucket)) === 16);
    // More at a time than are in reserve, through both.
    const deleted = Array.from({ length: 19 }, (_, index) => all[index % 2]?.expect(204, "DELETE", `s${index + 1}`));
    await Promise.all(deleted);
    for (const front of all) await front.expect(404, "GET", "s1");
    await other.expect(204, "POST", "kept", { headers: TEXT, body: "second" });
    await one.expect(201, "PUT", "s0", { headers: TEXT, body: BODY });
    assert.equal((await one.expect(200, "GET", "kept")).text, "firstsecond");
  });

  test("is told of once, by its name, and so is that appends go again", async (t) => {
    const { log, lines } = keptLog();
    const { bucket, all } = await begin(t, 1, { log });
    const [front] = all as [FrontEnd];
    const told = () => lines.flatMap(({ level, message }) => (message.includes(`SD_${bucket}_0`) ? [`${level} ${message}`] : []));
    const full = `error SD_${bucket}_0 is full: it takes no more until streams are deleted or its limit is raised`;
    await front.expect(201, "PUT", "s", { headers: TEXT, body: BODY });
    await allow(bucket, LEFT_BYTES);
    for (let times = 0; times < 3; times += 1) await front.expect(507, "POST", "s", { headers: TEXT, body: "more" });
    assert.deepEqual(told(), [full]);
    await allow(bucket, null);
    await eventually(async () => {
      await front.expect(204, "POST", "s", { headers: TEXT, body: "more" });
      return told().length > 1;
    });
    assert.deepEqual(told(), [full, `info SD_${bucket}_0 has room again`]);
  });

  test("takes a deletion of a stream with forks, and of as many small ones as the reserve is for", async (t) => {
    const { bucket, all } = await begin(t, 1);
    const [front] = all as [FrontEnd];
    await front.expect(201, "PUT", "source", { headers: TEXT, body: "shared" });
    await front.expect(201, "PUT", "fork", { headers: { ...TEXT, "Stream-Forked-From": "/v1/stream/source" } });
    for (let index = 0; index < 14; index += 1) await front.expect(201, "PUT", `s${index}`, { headers: TEXT });
    await allow(bucket, LEFT_BYTES);
    await front.expect(204, "DELETE", "source");
    assert.equal((await front.expect(200, "GET", "fork")).text, "shared");
    for (let index = 0; index < 14; index += 1) await front.expect(204, "DELETE", `s${index}`);
    await front.expect(204, "DELETE", "fork");
    for (const name of ["fork", "s0", "s13"]) await front.expect(404, "GET", name);
    // The fork gives up its hold behind the answer.
    await eventually(async () => (await front.send("GET", "source")).status === 404);
  });

  test("answers a deletion with 507 where nothing is in reserve, and the stream stays whole", async (t) => {
    const { bucket, all } = await begin(t, 1);
    const [front] = all as [FrontEnd];
    await front.expect(201, "PUT", "s", { headers: TEXT, body: BODY });
    await raw.call(`STREAM.PURGE.SD_${bucket}_0`, { filter: `sd.${bucket}.0.r` });
    await allow(bucket, LEFT_BYTES);
    assert.match((await front.expect(507, "DELETE", "s")).text, /storage-full/);
    assert.equal((await front.expect(200, "GET", "s")).text, BODY);
    await allow(bucket, null);
    await front.expect(204, "DELETE", "s");
  });

  test("is swept without a lease, so that what has expired and what retention drops make room", async (t) => {
    const { bucket, all } = await begin(t, 1);
    const [front] = all as [FrontEnd];
    await front.expect(201, "PUT", "expiring", { headers: { ...TEXT, "Stream-TTL": "60" }, body: BODY });
    await front.expect(201, "PUT", "old", { headers: TEXT, body: BODY });
    const { bytes } = (await infoOf(`SD_${bucket}_0`)).state;
    await allow(bucket, LEFT_BYTES);
    await front.expect(507, "POST", "old", { headers: TEXT, body: BODY });
    const clock = new ForwardClock();
    clock.aheadMs = 2 * 3_600_000;
    await startFrontEnds(t, cluster, 1, { bucket, query: "", clock, retentionAgeMs: 3_600_000 });
    await eventually(async () => (await infoOf(`SD_${bucket}_0`)).state.bytes < bytes - 1.5 * BODY.length);
    await front.expect(404, "GET", "expiring");
    await front.expect(204, "POST", "old", { headers: TEXT, body: "new" });
    assert.equal((await front.expect(200, "GET", "old")).text, "new");
  });
});

/** Anybody is in an account whose JetStream streams may have so many bytes together. */
const SMALL_ACCOUNT = `
accounts { SMALL: { jetstream: { max_mem: 1000000, max_file: 500000 }, users: [{ user: any, password: "for a test" }] } }
no_auth_user: any
`;

describe("an account that has reached its limit", { timeout: 120_000 }, () => {
  test("has appends and creations refused with 507, and takes deletions, which make room", async (t) => {
    const cluster = await NatsCluster.start({ size: 1, more: SMALL_ACCOUNT });
    t.after(() => cluster.stop());
    const [front] = await startFrontEnds(t, cluster, 1, { query: "?replicas=1&shards=1" });
    assert.ok(front !== undefined);
    let count = 0;
    let status = 201;
    for (; status === 201; count += 1) ({ status } = await front.send("PUT", `s${count}`, { headers: TEXT, body: BODY }));
    assert.equal(status, 507);
    assert.ok(count > 30, `only ${count} were made`);
    const refused = await front.expect(507, "POST", "s0", { headers: TEXT, body: BODY });
    assert.match(refused.text, /storage-full/);
    for (let index = 1; index < 4; index += 1) await front.expect(204, "DELETE", `s${index}`);
    await front.expect(204, "POST", "s0", { headers: TEXT, body: "more" });
    assert.equal((await front.expect(200, "GET", "s0")).text, `${BODY}more`);
  });
});
