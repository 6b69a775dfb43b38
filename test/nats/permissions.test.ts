import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "@nats-io/transport-node";
import { API_ERROR, type ApiAnswer } from "../../src/storage/nats/jetstream/answers.js";
import { Page } from "../helpers/page-examples.js";
import { startStreamdir } from "../helpers/process.js";
import { ask } from "../helpers/real-server.js";
import { EventFollower } from "../proxies/follow.js";
import { HERE } from "./front-end.js";
import { NatsCluster } from "./nats-cluster.js";
import { authorizationFor, PermittedServer } from "./permitted-server.js";

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

for (const [what, change, subject] of [
  ["another bucket", (text: string) => text.replaceAll("chats", "others"), String.raw`sd\.chats\.0\.r`],
  ["less than notes of reads", (text: string) => text.replace('"sdt.chats.>", ', ""), String.raw`sdt\.chats\.none`],
  [
    "no look at JetStream",
    (text: string) => text.replace('"$JS.API.STREAM.INFO.*", ', ""),
    String.raw`\$JS\.API\.STREAM\.INFO\.SD_chats_0`,
  ],
  ["no answers", (text: string) => text.replace('"_INBOX.>", ', ""), String.raw`_INBOX\.\w+\.\*`],
] as const)
  test(`permissions for ${what} are refused at the start`, { timeout: 60_000 }, async (t) => {
    const cluster = await NatsCluster.start({ size: 1, more: authorizationFor(change) });
    t.after(() => cluster.stop());
    const storage = cluster.storageOf("chats", "?replicas=1&shards=1").replace("nats://", "nats://streamdir:change-me@");
    const { status, stderr } = await startStreamdir(t, ["--port", "0", "--log-level", "silent"], {
      cwd: HERE,
      env: { STREAMDIR_STORAGE: storage },
    }).ended;
    assert.equal(status, 1);
    assert.match(
      stderr,
      new RegExp(`^streamdir: Cannot start: the user of the NATS servers may not do what streamdir needs: .*"${subject}".*\n$`),
    );
  });

test("a bucket that the user may not write to is not made", { timeout: 60_000 }, async (t) => {
  const authorization = authorizationFor((text) => text.replace("change-me", "known"));
  const cluster = await NatsCluster.start({ size: 1, more: authorization });
  t.after(() => cluster.stop());
  const storage = cluster.storageOf("typo", "?replicas=1").replace("nats://", "nats://streamdir:known@");
  const { stderr } = await startStreamdir(t, ["--port", "0"], { cwd: HERE, env: { STREAMDIR_STORAGE: storage } }).ended;
  assert.match(stderr, /Cannot start: .*"sd\.typo\.0\.r"/);
  const connection = await connect({ servers: [...cluster.servers], user: "streamdir", pass: "known" });
  t.after(() => connection.close());
  for (const name of ["0", "1", "2", "touch"]) {
    const info = await connection.request(`$JS.API.STREAM.INFO.SD_typo_${name}`);
    assert.equal(info.json<ApiAnswer>().error?.err_code, API_ERROR.noSuchStream, name);
  }
});

test("permissions that are taken away while it serves make it unready, and are told once", { timeout: 120_000 }, async (t) => {
  const server = await PermittedServer.start(t);
  const { url, process: frontEnd } = await server.serve(t);
  const readiness = async (): Promise<number> => (await ask(new URL("/readyz", url).href, "GET")).status;
  assert.equal((await ask(`${url}s`, "PUT", { headers: TEXT, body: "a" })).status, 201);

  await server.take('"sd.chats.>", ');
  for (let appends = 0; appends < 3; appends += 1) {
    const refused = await ask(`${url}s`, "POST", { headers: TEXT, body: "b" });
    assert.deepEqual([refused.status, JSON.parse(refused.body).code], [503, "overloaded"]);
  }
  assert.equal(await readiness(), 503);
  assert.match((await ask(new URL("/health", url).href, "GET")).body, /may not do what streamdir needs: .*sd\.chats\.0\.s\.s/);

  await server.take("");
  while ((await readiness()) !== 200);
  assert.equal((await ask(`${url}s`, "POST", { headers: TEXT, body: "c" })).status, 204);
  assert.equal((await ask(`${url}s`, "GET")).body, "ac");
  const told = frontEnd.stderrText().match(/ error .*may not use a subject.*/g);
  assert.equal(told?.length, 1, frontEnd.stderrText());
});
