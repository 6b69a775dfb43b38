// The Backup chapter of docs/cluster.md, against real servers.
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { createServer, type RunningServer } from "../../src/server.js";
import { keptLog, type LogLine } from "../helpers/engine.js";
import { until } from "../helpers/until.js";
import { FrontEnd } from "./front-ends.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster, shardsOf } from "./raw-cluster.js";
import { restore, snapshot, type StreamSnapshot } from "./snapshots.js";

const SHARDS = 2;

let cluster: NatsCluster;
before(async () => {
  cluster = await NatsCluster.start({ size: 3 });
});
after(() => cluster.stop());

interface Started {
  readonly server: RunningServer;
  readonly frontEnd: FrontEnd;
  readonly lines: readonly LogLine[];
}

async function start(t: TestContext, bucket: string): Promise<Started> {
  const { log, lines } = keptLog();
  const storage = cluster.storageOf(bucket, `?shards=${SHARDS}`);
  const server = await createServer({ port: 0, insecure: true, log, storage });
  t.after(() => server.close());
  return { server, frontEnd: new FrontEnd(server), lines };
}

async function connect(t: TestContext): Promise<RawCluster> {
  const raw = await RawCluster.connect(cluster.servers);
  t.after(() => raw.close());
  return raw;
}

function streamsOf(bucket: string): string[] {
  return [...shardsOf(bucket, SHARDS), `SD_${bucket}_touch`];
}

async function backup(raw: RawCluster, bucket: string): Promise<StreamSnapshot[]> {
  const taken: StreamSnapshot[] = [];
  for (const name of streamsOf(bucket)) taken.push(await snapshot(raw.connection, name));
  return taken;
}

function producer(sequence: number): { headers: Readonly<Record<string, string>> } {
  return { headers: { "Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": String(sequence) } };
}

async function append(frontEnd: FrontEnd, name: string, sequence: number, status: number): Promise<string> {
  const { text } = await frontEnd.expect(status, "POST", name, { ...producer(sequence), body: `${sequence};` });
  return text;
}

const NAMES = Array.from({ length: 8 }, (_, at) => `chat/${at}`);

async function textsOf(frontEnd: FrontEnd): Promise<string[]> {
  const all: string[] = [];
  for (const name of NAMES) all.push((await frontEnd.expect(200, "GET", `${name}?offset=-1`)).text);
  return all;
}

test("a bucket is restored as it was at its backup: streams, forks, counts of producers", { timeout: 180_000 }, async (t) => {
  const raw = await connect(t);
  const first = await start(t, "whole");
  for (const name of NAMES) {
    await first.frontEnd.expect(201, "PUT", name, { headers: { "Content-Type": "text/plain", "Stream-TTL": "86400" } });
    for (const sequence of [0, 1, 2]) await append(first.frontEnd, name, sequence, 200);
  }
  await first.frontEnd.expect(201, "PUT", "fork", { headers: { "Content-Type": "text/plain", "Stream-Forked-From": "/v1/stream/chat/0" } });
  await first.frontEnd.expect(200, "GET", "chat/1?offset=-1");
  const taken = await backup(raw, "whole");

  const atBackup = await textsOf(first.frontEnd);
  for (const name of NAMES.slice(1)) await append(first.frontEnd, name, 3, 200);
  const { headers } = await first.frontEnd.expect(200, "GET", "chat/1?offset=-1");
  const readTo = headers.get("Stream-Next-Offset") ?? "";
  await first.frontEnd.expect(204, "DELETE", "chat/2");
  await first.frontEnd.expect(201, "PUT", "later", {});
  await first.server.close();

  for (const name of streamsOf("whole")) await raw.call(`STREAM.DELETE.${name}`, {});
  const [one, ...others] = taken;
  assert.ok(one !== undefined);
  await restore(raw.connection, one);
  await assert.rejects(start(t, "whole"), /the bucket whole has lost SD_whole_1, SD_whole_touch: restore it from a backup/);
  for (const other of others) await restore(raw.connection, other);

  const { frontEnd, lines } = await start(t, "whole");
  assert.deepEqual(await textsOf(frontEnd), atBackup);
  assert.equal((await frontEnd.expect(200, "GET", "fork?offset=-1")).text, "0;1;2;");
  await frontEnd.expect(404, "GET", "later?offset=-1");
  await frontEnd.expect(400, "GET", `chat/1?offset=${readTo}`);
  assert.match(await append(frontEnd, "chat/1", 4, 409), /producer-gap/);
  await append(frontEnd, "chat/1", 2, 204);
  await append(frontEnd, "chat/1", 3, 200);
  await frontEnd.expect(200, "GET", `chat/1?offset=${readTo}`);
  assert.deepEqual(
    lines.filter(({ level }) => level === "error" || level === "warn"),
    [],
  );
});

test("a shard that is restored under a running front end is told to be another one", { timeout: 180_000 }, async (t) => {
  const raw = await connect(t);
  const { lines } = await start(t, "under");
  const taken = await backup(raw, "under");
  await raw.call("STREAM.DELETE.SD_under_0", {});
  const errors = (): string[] => lines.filter(({ level }) => level === "error").map(({ message }) => message);
  await until(() => errors().length === 1);
  const [one] = taken;
  assert.ok(one !== undefined);
  await restore(raw.connection, one);
  await until(() => errors().length === 2);
  assert.deepEqual(errors(), [
    "the NATS servers have no SD_under_0: restore it from a backup before any front end starts",
    "SD_under_0 was deleted and made anew by somebody else",
  ]);
});
