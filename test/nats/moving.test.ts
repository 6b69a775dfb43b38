import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { bash, STREAMDIR_IN_SHELL } from "../helpers/page-examples.js";
import { startStreamdir, type TestScope } from "../helpers/process.js";
import { ask, codeOf } from "../helpers/real-server.js";
import { tempDir } from "../helpers/temp-dir.js";
import { NatsCluster } from "./nats-cluster.js";

const JSON_TYPE = { "Content-Type": "application/json" };
const TEXT = { "Content-Type": "text/plain" };
const BYTES = { "Content-Type": "application/octet-stream" };

async function serve(scope: TestScope, args: readonly string[]): Promise<string> {
  const server = startStreamdir(scope, ["serve", ...args, "--port", "0"]);
  const ready = await server.stdoutLine(/http:/).catch(async (fault: unknown) => {
    throw new Error((await server.ended).stderr, { cause: fault });
  });
  return /http:[^\s"]+/.exec(ready)?.[0] ?? "";
}

/** Streams of each kind. */
async function fill(url: string): Promise<void> {
  const send = async (method: string, name: string, headers: Record<string, string>, body?: string | Buffer): Promise<void> => {
    const { status, body: said } = await ask(`${url}${name}`, method, { headers, ...(body === undefined ? {} : { body }) });
    assert.ok(status < 300, `${method} ${name}: ${status} ${said}`);
  };
  await send("PUT", "chat/1", { ...JSON_TYPE, "Stream-TTL": "86400" }, '[{"n":1},{"n":2}]');
  await send("POST", "chat/1", JSON_TYPE, '{"n":3}');
  await send(
    "PUT",
    "chat/1-b",
    { ...JSON_TYPE, "Stream-Forked-From": "/v1/stream/chat/1", "Stream-Fork-Offset": "-1", "Stream-Fork-Sub-Offset": "2" },
    '{"n":4}',
  );
  await send("PUT", "über/notes", { ...TEXT, "Stream-Closed": "true" }, "all");
  await send("PUT", "empty", { ...TEXT, "Stream-Expires-At": "2100-01-01T00:00:00Z" });
  await send("PUT", "raw", BYTES);
  for (let at = 0; at < 5; at += 1) await send("POST", "raw", BYTES, Buffer.alloc(300_000, at));
}

/** What the list says of all streams, but for what a copy has of its own. */
async function facts(url: string): Promise<unknown[]> {
  const lines = (await bash(`${STREAMDIR_IN_SHELL}streamdir ls --json --server ${url}`)).trim().split("\n");
  return lines.map((line) => {
    const listed = JSON.parse(line) as Record<string, unknown>; // docs/api.md has its fields
    const { name, contentType, bytes, closed, ttlSeconds, forkedFrom = null } = listed;
    return { name, contentType, bytes, closed, ttlSeconds, isFork: forkedFrom !== null };
  });
}

describe("streams that are moved between a directory and a bucket", { timeout: 300_000 }, () => {
  let cluster: NatsCluster;
  before(async () => {
    cluster = await NatsCluster.start({ size: 1 });
  });
  after(() => cluster.stop());

  for (const way of ["into a bucket", "out of a bucket"] as const) {
    test(`${way} have their bytes, boundaries, types, lifetimes, closures and forks`, async (context) => {
      const bucket = ["--storage", cluster.storageOf(way === "into a bucket" ? "in" : "out", "?replicas=1")];
      const directory = [join(tempDir(), "data")];
      const [from, to] = way === "into a bucket" ? [directory, bucket] : [bucket, directory];
      const source = await serve(context, from);
      const target = await serve(context, to);
      await fill(source);
      const archive = join(tempDir(), "streams.tar");
      const run = (command: string): Promise<string> => bash(`${STREAMDIR_IN_SHELL}${command}`);
      await run(`streamdir export '**' --server ${source} > ${archive}`);
      const imported = await run(`streamdir import --server ${target} < ${archive}`);
      assert.equal(imported, ["chat/1", "chat/1-b", "empty", "raw", "über/notes"].map((name) => `imported  ${name}\n`).join(""));
      assert.deepEqual(await facts(target), await facts(source));
      for (const name of ["chat/1", "chat/1-b", "raw", "%C3%BCber/notes"]) {
        const [there, here] = await Promise.all([source, target].map((url) => ask(`${url}${name}?offset=-1`, "GET")));
        // A read of bytes ends where an append ended.
        if (name !== "raw") assert.equal(here?.body, there?.body, name);
      }
      assert.equal(
        await run(`streamdir cat raw --server ${source} | sha256sum`),
        await run(`streamdir cat raw --server ${target} | sha256sum`),
      );
      // The same once more changes nothing.
      assert.equal(await run(`streamdir import --server ${target} < ${archive}`), imported.replaceAll("imported", "there   "));
    });

    test(`${way} refuse the offsets of the old place, and say where they begin`, async (context) => {
      const bucket = ["--storage", cluster.storageOf("tokens", "?replicas=1")];
      const directory = [join(tempDir(), "data")];
      const [from, to] = way === "into a bucket" ? [directory, bucket] : [bucket, directory];
      const source = await serve(context, from);
      const target = await serve(context, to);
      const name = way === "into a bucket" ? "old" : "new";
      const { headers } = await ask(`${source}${name}`, "PUT", { headers: TEXT, body: "text" });
      const token = String(headers["stream-next-offset"]);
      await bash(`${STREAMDIR_IN_SHELL}streamdir export ${name} --server ${source} | streamdir import --server ${target}`);
      for (const live of ["", "&live=long-poll", "&live=sse"]) {
        const refused = await ask(`${target}${name}?offset=${token}${live}`, "GET");
        assert.deepEqual([refused.status, codeOf(refused)], [410, "offset-gone"], live);
        const earliest = String(refused.headers["stream-earliest-offset"]);
        assert.equal((await ask(`${target}${name}?offset=${earliest}`, "GET")).body, "text");
      }
    });
  }

  test("with a JSON message that no message of the servers has room for are refused alone, and the rest is there", async (context) => {
    const source = await serve(context, [join(tempDir(), "data")]);
    const target = await serve(context, ["--storage", cluster.storageOf("large", "?replicas=1")]);
    assert.equal((await ask(`${source}large`, "PUT", { headers: JSON_TYPE, body: `["${"x".repeat(1_100_000)}"]` })).status, 201);
    assert.equal((await ask(`${source}cut`, "PUT", { headers: BYTES, body: Buffer.alloc(1_100_000) })).status, 201);
    assert.equal((await ask(`${source}small`, "PUT", { headers: BYTES, body: "small" })).status, 201);
    const said = await bash(
      `${STREAMDIR_IN_SHELL}streamdir export '**' --server ${source} | (streamdir import --server ${target} || echo "status $?")`,
    );
    assert.match(said, /^imported {2}cut\nrefused {3}large.*\nimported {2}small\n.*status 65\n$/s);
  });
});
