import assert from "node:assert/strict";
import { test } from "node:test";
import { keptLog } from "../helpers/engine.js";
import { until } from "../helpers/until.js";
import { newBucket } from "./buckets.js";
import { ForwardClock, startFrontEnds } from "./front-ends.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster } from "./raw-cluster.js";

test(
  "a stream of touches that is gone is in the log and in the health, and appends to known streams go on",
  { timeout: 120_000 },
  async (t) => {
    const cluster = await NatsCluster.start({ size: 3 });
    t.after(() => cluster.stop());
    const raw = await RawCluster.connect(cluster.servers);
    t.after(() => raw.close());
    const bucket = newBucket();
    const { log, lines } = keptLog();
    const clock = new ForwardClock();
    const options = { bucket, query: "?shards=1", log, clock, storageTimeoutMs: 5000 };
    const [front, other] = await startFrontEnds(t, cluster, 2, options);
    assert.ok(front !== undefined && other !== undefined);
    const headers = { "Content-Type": "text/plain", "Stream-TTL": "3600" };
    await front.expect(201, "PUT", "s", { headers, body: "a" });
    const health = async () => (await fetch(new URL("/health", front.urlOf("s")))).text();
    assert.equal(await health(), '{"status":"ok"}');
    await raw.call(`STREAM.DELETE.SD_${bucket}_touch`, {});
    const why = `the NATS servers have no SD_${bucket}_touch: restore it from a backup before any front end starts`;
    await until(() => lines.some(({ level, message }) => level === "error" && message === why));
    assert.equal(await health(), JSON.stringify({ status: "ok", reason: why }));
    await front.expect(204, "POST", "s", { body: "b" });
    // So soon behind an append a read is not noted.
    assert.equal((await front.expect(200, "GET", "s")).text, "ab");
    clock.aheadMs = 60_000;
    // It waits for the note in vain.
    assert.equal((await front.expect(200, "GET", "s")).text, "ab");
    await front.expect(204, "POST", "s", { body: "c" });
    // Who has not loaded it has to know when it was last read.
    for (const method of ["GET", "POST"]) await other.expect(503, method, "s", method === "GET" ? {} : { body: "d" });
  },
);
