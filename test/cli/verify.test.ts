import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createServer } from "../../src/server.js";
import { startStreamdir } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const LOG = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** A directory with one stream, which no server has open any more. */
async function servedDirectory(): Promise<string> {
  const dir = tempDir();
  const server = await createServer({ dir, port: 0, journalBytes: 65536, log: LOG });
  await fetch(`${server.url}a/b`, { method: "PUT", headers: { "Content-Type": "text/plain" }, body: "hello" });
  await server.close();
  return dir;
}

function segmentOf(dir: string): string {
  const found = readdirSync(dir, { recursive: true, encoding: "utf8" }).find((path) => path.endsWith(".seg"));
  assert.ok(found !== undefined);
  return join(dir, found);
}

test("verify says that a sound directory is sound", async (context) => {
  const dir = await servedDirectory();
  const ended = await startStreamdir(context, ["verify", dir]).ended;
  assert.equal(ended.status, 0, ended.stderr);
  assert.match(ended.stdout, /^nothing wrong in 1 streams, 1 journal files, \d+ bytes\n$/);
  assert.equal(ended.stderr, "");
});

test("verify names the stream and the file of a flipped bit and ends with 1", async (context) => {
  const dir = await servedDirectory();
  const segment = segmentOf(dir);
  const bytes = readFileSync(segment);
  bytes.writeUInt8(bytes.readUInt8(2) ^ 1, 2);
  writeFileSync(segment, bytes);
  const ended = await startStreamdir(context, ["verify", dir]).ended;
  assert.equal(ended.status, 1);
  const [finding, summary] = ended.stdout.split("\n");
  assert.equal(finding, `stream "a/b": ${segment}: its first 5 bytes do not match their checksum: positions 0 to 5 of the stream`);
  assert.match(summary ?? "", /^1 finding in 1 streams/);

  const json = await startStreamdir(context, ["verify", dir, "--json"]).ended;
  assert.deepEqual(JSON.parse(json.stdout.split("\n")[0] ?? ""), {
    stream: "a/b",
    file: segment,
    offset: null,
    problem: "its first 5 bytes do not match their checksum: positions 0 to 5 of the stream",
  });
});

test("verify refuses a directory that a server has open, and one that is none of ours", async (context) => {
  const dir = tempDir();
  const server = await createServer({ dir, port: 0, journalBytes: 65536, log: LOG });
  const busy = await startStreamdir(context, ["verify", dir]).ended;
  await server.close();
  assert.equal(busy.status, 1);
  assert.match(busy.stderr, new RegExp(`^streamdir: the directory is in use by process ${process.pid} on .*\n$`));
  const foreign = await startStreamdir(context, ["verify", tempDir()]).ended;
  assert.equal(foreign.status, 1);
  assert.match(foreign.stderr, /is not a data directory of streamdir/);
});
