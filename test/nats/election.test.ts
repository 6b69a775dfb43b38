import assert from "node:assert/strict";
import test from "node:test";
import { newBucket } from "./buckets.js";
import { startTwo, type Answered } from "./front-ends.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster, shardsOf } from "./raw-cluster.js";

test("while servers elect a leader, requests wait for it at front ends that know a stream and at those that do not", async (t) => {
  const cluster = await NatsCluster.start({ size: 3 });
  t.after(() => cluster.stop());
  const raw = await RawCluster.connect(cluster.servers);
  t.after(() => raw.close());
  const bucket = newBucket();
  const [one, other] = await startTwo(t, cluster, { bucket, query: "?shards=1" });
  await one.expect(201, "PUT", "known", { body: "a" });
  await other.expect(200, "GET", "known?offset=-1");
  for (const name of ["read", "written", "deleted", "source"]) await one.expect(201, "PUT", name, { body: "a" });

  const leader = await raw.leaderOfMost(shardsOf(bucket, 1));
  await cluster.kill(cluster.placeOf(leader));
  const [known, read, list] = await Promise.all([
    other.expect(200, "GET", "known?offset=-1"),
    other.expect(200, "GET", "read?last=1"),
    other.expect(200, "GET", "__ds/streams"),
    other.expect(204, "POST", "written", { body: "b" }),
    other.expect(204, "DELETE", "deleted"),
    other.expect(201, "PUT", "new", { body: "c" }),
    other.expect(201, "PUT", "fork", { headers: { "Stream-Forked-From": "/v1/stream/source" } }),
    other.expect(404, "HEAD", "none"),
    one.expect(200, "HEAD", "known"),
  ]);
  assert.deepEqual([known.text, read.text], ["a", "a"]);
  assert.match(list.text, /"known"/);
  assert.equal((await one.expect(200, "GET", "written?offset=-1")).text, "ab");
});

test("when no leader comes, requests are refused after the patience and from then on, and answered again when there is one", async (t) => {
  const cluster = await NatsCluster.start({ size: 3 });
  t.after(() => cluster.stop());
  const [one] = await startTwo(t, cluster, { storageTimeoutMs: 1000, query: "?shards=1" });
  await one.expect(201, "PUT", "s", { body: "a" });
  await Promise.all([0, 1].map((at) => cluster.kill(at)));
  const ask = (): Promise<readonly Answered[]> =>
    Promise.all([one.send("GET", "s?offset=-1"), one.send("HEAD", "other"), one.send("GET", "__ds/streams")]);
  // A leader whose followers have gone is believed for some seconds.
  while ((await ask()).some(({ status }) => status !== 503));
  for (let asked = 0; asked < 20; asked += 1)
    assert.deepEqual(
      (await ask()).map(({ status }) => status),
      [503, 503, 503],
    );
  await Promise.all([0, 1].map((at) => cluster.startServer(at)));
  let again = await one.send("GET", "s?offset=-1");
  while (again.status === 503) again = await one.send("GET", "s?offset=-1");
  assert.deepEqual([again.status, again.text], [200, "a"]);
});
