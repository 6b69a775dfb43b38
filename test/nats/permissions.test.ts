import assert from "node:assert/strict";
import { test } from "node:test";
import { Page } from "../helpers/page-examples.js";
import { startStreamdir } from "../helpers/process.js";
import { ask } from "../helpers/real-server.js";
import { EventFollower } from "../proxies/follow.js";
import { NatsCluster } from "./nats-cluster.js";

const TEXT = { "Content-Type": "text/plain" };

test("the permissions of docs/cluster.md are enough", { timeout: 240_000 }, async (context) => {
  const [authorization = ""] = new Page("docs/cluster.md").blocksUnder("Who may do what in NATS");
  assert.match(authorization, /^authorization \{/);
  const cluster = await NatsCluster.start({ size: 1, more: authorization });
  context.after(() => cluster.stop());
  const storage = cluster.storageOf("chats", "?replicas=1").replace("nats://", "nats://streamdir:change-me@");
  const urls: string[] = [];
  const frontEnds = [0, 1].map(() => startStreamdir(context, ["serve", "--port", "0"], { env: { STREAMDIR_STORAGE: storage } }));
  for (const frontEnd of frontEnds) {
    const ready = await frontEnd.stdoutLine(/http:/).catch(async (fault: unknown) => {
      throw new Error((await frontEnd.ended).stderr, { cause: fault });
    });
    urls.push(/http:[^\s"]+/.exec(ready)?.[0] ?? "");
  }
  const [here = "", there = ""] = urls;

  // All that the engine does: creations, live reads at the other front end, forks, lists, reads that are noted, deletions.
  assert.equal((await ask(`${here}a/1`, "PUT", { headers: { ...TEXT, "Stream-TTL": "3600" }, body: "one" })).status, 201);
  const list = ask(`${there}__ds/streams`, "GET");
  const reader = await EventFollower.start(context, `${there}a/1?live=sse&offset=-1`);
  assert.equal((await ask(`${here}a/1`, "POST", { headers: TEXT, body: "two" })).status, 204);
  await reader.until(({ data }) => data.includes("two"));
  assert.equal((await ask(`${there}a/1-b`, "PUT", { headers: { ...TEXT, "Stream-Forked-From": "/v1/stream/a/1" } })).status, 201);
  assert.equal((await ask(`${here}a/1-b`, "GET")).body, "onetwo");
  assert.match((await list).body, /"a\/1"/);
  for (const name of ["a/1", "a/1-b"]) assert.equal((await ask(`${here}${name}`, "DELETE")).status, 204);
  await reader.end();

  const figures = (await ask(new URL("/metrics", here).href, "GET")).body;
  assert.match(figures, /^streamdir_cluster_publishes_total\{outcome="stored"\} [1-9]/m);
  assert.match(figures, /^streamdir_cluster_decided_again_total \d/m);

  for (const frontEnd of frontEnds) assert.doesNotMatch(frontEnd.stderrText(), /"fault":/);
  const refused = cluster.members.flatMap(({ said }) => said.filter((line) => /violation/i.test(line)));
  assert.deepEqual(refused, []);
});
