import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { startStreamdir } from "../helpers/process.js";
import { RealServer } from "../helpers/real-server.js";
import { tempDir } from "../helpers/temp-dir.js";

const CONTENT_TYPES = ["text/plain", "application/json", "application/octet-stream"];

/** Appends a body that every content type takes, and gives where the stream ends then. */
async function append(server: RealServer, name: string, text: string): Promise<string> {
  const { headers } = await server.ask("POST", name, { headers: { "Content-Type": name }, body: JSON.stringify(text) });
  return String(headers["stream-next-offset"]);
}

/** A server on a copy of a directory. */
async function serveCopy(context: TestContext, dir: string): Promise<RealServer> {
  const copy = join(tempDir(), "copy");
  cpSync(dir, copy, { recursive: true });
  const server = new RealServer(context, [], copy);
  await server.start();
  return server;
}

test("what a restored server had given out and has lost is gone, also once other bytes are in its place", async (context) => {
  const first = new RealServer(context, []);
  await first.start();
  const kept = new Map<string, string>();
  for (const name of CONTENT_TYPES) {
    await first.ask("PUT", name, { headers: { "Content-Type": name } });
    await append(first, name, "kept");
    kept.set(name, await append(first, name, "kept, too"));
  }
  const backup = join(tempDir(), "backup");
  assert.equal((await startStreamdir(context, ["backup", first.dir, backup]).ended).status, 0);
  const lost = new Map<string, string[]>();
  for (const name of CONTENT_TYPES) lost.set(name, [await append(first, name, "lost"), await append(first, name, "lost, too")]);
  assert.equal((await first.stop()).status, 0);

  const restored = await serveCopy(context, backup);
  const assertGone = async (): Promise<void> => {
    for (const name of CONTENT_TYPES)
      for (const offset of lost.get(name) ?? [])
        for (const live of ["", "&live=long-poll", "&live=sse"]) {
          const answer = await restored.ask("GET", `${name}?offset=${offset}${live}`);
          const what = `${name} ${offset} ${live}: ${answer.body}`;
          assert.equal(answer.status, 410, what);
          assert.match(answer.body, /"code":"offset-gone"/, what);
          const earliest = String(answer.headers["stream-earliest-offset"]);
          assert.equal((await restored.ask("GET", `${name}?offset=${earliest}`)).status, 200, what);
        }
  };
  await assertGone();
  for (let round = 0; round < 3; round += 1) {
    for (const name of CONTENT_TYPES) {
      // The same bytes at first, and one more with each round.
      for (const text of ["lost", "lost, too", "x".repeat(round)]) await append(restored, name, text);
      const { body } = await restored.ask("GET", `${name}?offset=${kept.get(name)}`);
      assert.ok(body.includes("lost, too"), `${name} goes on where the backup ended: ${body}`);
    }
    await assertGone();
    await restored.killAndRestart();
    await assertGone();
  }
  assert.equal((await restored.stop()).status, 0);
  await restored.verify();
});

const SEGMENT_BYTES = 65_536;

/** Offsets, by the stream's name. */
type Offsets = readonly (readonly [name: string, offset: string])[];

/** Appends to each of the streams, and gives where they end then. */
async function appendToAll(server: RealServer, text: string): Promise<Offsets> {
  const named = async (name: string): Promise<readonly [string, string]> => {
    const { headers } = await server.ask("POST", name, { headers: { "Content-Type": "text/plain" }, body: text });
    return [name, String(headers["stream-next-offset"])];
  };
  return Promise.all(["kept", "empty", "full"].map(named));
}

/** What reads from these offsets give: a body, or a status. */
async function readAt(server: RealServer, offsets: Offsets): Promise<(number | string)[]> {
  const answers = await Promise.all(offsets.map(([name, offset]) => server.ask("GET", `${name}?offset=${offset}`)));
  return answers.map(({ status, body }) => (status === 200 ? body : status));
}

const GONE = [410, 410, 410];
const all = (text: string): string[] => [text, text, text];

test("offsets of one restore are gone after another, and are kept by a backup of it", async (context) => {
  const backUp = async ({ dir }: RealServer): Promise<string> => {
    const backup = join(tempDir(), "backup");
    assert.equal((await startStreamdir(context, ["backup", dir, backup]).ended).status, 0);
    return backup;
  };
  const first = new RealServer(context, [`--segment-bytes=${SEGMENT_BYTES}`]);
  await first.start();
  for (const [name, body] of [
    ["kept", "kept"],
    ["empty", ""],
    ["full", "x".repeat(SEGMENT_BYTES)],
  ] as const)
    await first.ask("PUT", name, { headers: { "Content-Type": "text/plain" }, body });
  const backup = await backUp(first);
  const lost = await appendToAll(first, "lost");
  await first.stop();

  const once = await serveCopy(context, backup);
  assert.deepEqual(await readAt(once, lost), GONE);
  const atOnce = await appendToAll(once, "once");
  const backupOfOnce = await backUp(once);
  const lostOnce = await appendToAll(once, "and once more");
  assert.deepEqual([await readAt(once, lost), await readAt(once, atOnce)], [GONE, all("and once more")]);
  await once.stop();

  const twice = await serveCopy(context, backup);
  await appendToAll(twice, "twice");
  await appendToAll(twice, "and twice as much as before");
  for (let life = 0; life < 2; life += 1) {
    for (const offsets of [lost, atOnce, lostOnce]) assert.deepEqual(await readAt(twice, offsets), GONE);
    await twice.killAndRestart();
  }
  assert.equal((await twice.stop()).status, 0);

  const after = await serveCopy(context, backupOfOnce);
  assert.deepEqual(await readAt(after, atOnce), all(""));
  const atEnd = await appendToAll(after, "a text that is longer than all before");
  for (let life = 0; life < 2; life += 1) {
    assert.deepEqual(await readAt(after, atOnce), all("a text that is longer than all before"));
    for (const offsets of [lost, lostOnce]) assert.deepEqual(await readAt(after, offsets), GONE);
    assert.deepEqual(await readAt(after, atEnd), all(""));
    await after.killAndRestart();
  }
  assert.equal((await after.stop()).status, 0);
  await after.verify();
});
