import assert from "node:assert/strict";
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { Layout, segmentPath, sidecarPath } from "../../src/storage/file/format/layout.js";
import { bytesOf } from "../helpers/engine.js";
import { Random } from "../helpers/random.js";
import { tempDir } from "../helpers/temp-dir.js";
import { flipBit } from "./damages.js";
import { journalFilesOf } from "./journal-damages.js";
import { ServedDirectory } from "./served-directory.js";

/** Long enough to go past the journal. */
const LARGE = bytesOf(9000, 5);

/** A stream with records in the journal, and files of its own from before. */
interface Journaled {
  readonly directory: string;
  /** Its files as they were some appends earlier. */
  readonly older: string;
  /** The directory of a sound one. */
  readonly good: string;
  readonly random: Random;
}

/** What happens to it while the server is down, and what is said then. */
const WHOLE: Readonly<Record<string, readonly [harm: (stream: Journaled) => void, problem: RegExp]>> = {
  "sidecar-flipped": [({ directory, random }) => flipBit(sidecarPath(directory), random), /./],
  "sidecar-gone": [({ directory }) => rmSync(sidecarPath(directory)), /it is missing/],
  "sidecar-is-directory": [
    ({ directory }) => (rmSync(sidecarPath(directory)), mkdirSync(sidecarPath(directory))),
    /it can't be read \(EISDIR\)/,
  ],
  "sidecar-of-another-stream": [({ directory, good }) => cpSync(sidecarPath(good), sidecarPath(directory)), /it is that of "good"/],
  "sidecar-from-before": [
    ({ directory, older }) => cpSync(sidecarPath(older), sidecarPath(directory)),
    /the journal goes on at position \d+, but the stream ends at \d+/,
  ],
  "all-files-from-before": [
    ({ directory, older }) => (rmSync(directory, { recursive: true }), cpSync(older, directory, { recursive: true })),
    /the journal goes on at position \d+, but the stream ends at \d+/,
  ],
  "directory-gone": [({ directory }) => rmSync(directory, { recursive: true }), /it is missing/],
  "segment-is-directory": [
    ({ directory }) => (rmSync(segmentPath(directory, 0)), mkdirSync(segmentPath(directory, 0))),
    /it can't be written \(EISDIR\)/,
  ],
};

function randomOf(context: TestContext): Random {
  const seed = Number(process.env["CORRUPTION_SEED"] ?? Date.now() % 2 ** 32);
  context.diagnostic(`CORRUPTION_SEED=${seed}`);
  return new Random(seed);
}

/** A server that was killed: every stream has `first, second` in its own files and `third` in the journal. */
async function killedServer(context: TestContext, names: readonly string[]): Promise<{ server: ServedDirectory; older: string }> {
  const server = new ServedDirectory(context, join(tempDir(), "data"));
  const older = join(tempDir(), "older");
  await server.start();
  for (const name of names) await server.must(201, "PUT", name, "first,");
  await server.end("SIGTERM");
  cpSync(server.dir, older, { recursive: true });
  await server.start();
  for (const name of names) await server.must(204, "POST", name, "second,");
  await server.end("SIGTERM");
  await server.start();
  for (const name of names) await server.must(204, "POST", name, "third");
  await server.end("SIGKILL");
  return { server, older };
}

/** The files in which the journal keeps what streams' files can't take. */
function keptOf({ layout }: ServedDirectory): string[] {
  return readdirSync(layout.journal)
    .filter((name) => name.endsWith(".kept"))
    .sort();
}

/** Appends until the journal has been checkpointed a few times. */
async function turnJournal(server: ServedDirectory): Promise<void> {
  const part = bytesOf(6000, 1);
  for (let count = 0; count < 60; count += 1) await server.must(204, "POST", "good", part);
}

test("a damaged stream with records in the journal is refused by every start, and the rest recovers", async (context) => {
  const random = randomOf(context);
  const names = Object.keys(WHOLE);
  const { server, older } = await killedServer(context, ["good", ...names]);
  const before = new Layout(older);
  for (const name of names) {
    const [harm] = WHOLE[name] ?? assert.fail();
    harm({
      directory: server.layout.streamDirectory(name),
      older: before.streamDirectory(name),
      good: server.layout.streamDirectory("good"),
      random,
    });
  }
  let good = "first,second,third";

  for (const [round, end] of (["SIGKILL", "SIGTERM", "SIGKILL", "SIGTERM"] as const).entries()) {
    await server.start();
    // The checkpoint of what was recovered finds what is in the segments' place, and tells it all in the directories.
    if (round === 0) await server.logged(/"records of damaged streams are kept in the journal"/);
    for (const name of names) {
      for (const query of ["", "?offset=now", "?offset=-1&live=sse", "?offset=now&live=long-poll"])
        await server.mustBeDamaged("GET", `${name}${query}`);
      await server.mustBeDamaged("HEAD", name);
      await server.mustBeDamaged("POST", name, "more");
      await server.mustBeDamaged("PUT", name, "");
    }
    await server.must(204, "POST", "good", "!");
    good += "!";
    assert.equal(String((await server.must(200, "GET", "good")).body), good);
    const log = await server.end(end);
    for (const name of names) {
      const lines = log.filter(({ stream, msg }) => stream === name && msg === "a stream is damaged");
      assert.ok(lines.length === 1, `${name}: ${JSON.stringify(log)}`);
      assert.match(String(lines[0]?.["problem"]), WHOLE[name]?.[1] ?? /^$/);
    }
  }

  await server.start();
  await turnJournal(server);
  const kept = keptOf(server);
  assert.ok(kept.length > 0);
  await turnJournal(server);
  assert.deepEqual(keptOf(server), kept, "what is kept of damaged streams does not grow");
  assert.ok(journalFilesOf(server.dir).length <= 5, "the journal goes on being freed");
  for (const name of names) await server.must(204, "DELETE", name);
  for (const name of names) await server.must(404, "GET", name);
  await server.end("SIGKILL");
  await server.start();
  for (const name of names) {
    await server.must(404, "GET", name);
    await server.must(201, "PUT", name, "new");
  }
  await server.end("SIGKILL");
  await server.start();
  for (const name of names) assert.equal(String((await server.must(200, "GET", name)).body), "new");
  assert.deepEqual(await server.end("SIGTERM"), []);
  assert.deepEqual(keptOf(server), [], "nothing is kept of what is deleted");
  assert.equal((await server.verify()).status, 0);
});

test("a damaged stream is deleted and made anew while its records are in the journal, and a crash takes back neither", async (context) => {
  const random = randomOf(context);
  const { server } = await killedServer(context, ["good", "bad", "worse"]);
  await server.start();
  await server.must(204, "POST", "bad", "fourth");
  for (const name of ["bad", "worse"]) flipBit(sidecarPath(server.layout.streamDirectory(name)), random);
  await server.end("SIGKILL");
  for (const name of ["bad", "worse"]) flipBit(sidecarPath(server.layout.streamDirectory(name)), random);
  await server.start();
  await server.must(204, "DELETE", "bad");
  await server.must(204, "DELETE", "worse");
  await server.must(201, "PUT", "bad", "new");
  await server.end("SIGKILL");
  for (let round = 0; round < 2; round += 1) {
    await server.start();
    assert.equal(String((await server.must(200, "GET", "bad")).body), "new");
    await server.must(404, "GET", "worse");
    await server.end(round === 0 ? "SIGKILL" : "SIGTERM");
  }
});

test("a large payload that went past the journal is compared with its checksum after a crash", async (context) => {
  const random = randomOf(context);
  const server = new ServedDirectory(context, join(tempDir(), "data"));
  await server.start();
  const behindFirst = String((await server.must(201, "PUT", "large", "first,")).headers.get("stream-next-offset"));
  await server.must(204, "POST", "large", LARGE);
  await server.must(204, "POST", "large", "behind");
  await server.must(201, "PUT", "good", LARGE);
  await server.end("SIGKILL");
  const directory = server.layout.streamDirectory("large");
  const path = join(
    directory,
    readdirSync(directory)
      .filter((name) => name.endsWith(".seg"))
      .sort()
      .at(-1) ?? "",
  );
  flipBit(path, random, LARGE.length / 2, LARGE.length);
  for (const end of ["SIGKILL", "SIGTERM", "SIGKILL"] as const) {
    await server.start();
    assert.equal(String((await server.must(200, "GET", "large")).body), "first,");
    await server.mustBeDamaged("GET", `large?offset=${behindFirst}`);
    assert.ok((await server.must(200, "GET", "good")).body.equals(LARGE));
    const log = await server.end(end);
    assert.deepEqual(
      log.map(({ stream, file }) => [stream, file]),
      [["large", path]],
    );
  }
});

test("damage under a running server ends at its stream, and live readers are let go in good order", async (context) => {
  const server = new ServedDirectory(context, join(tempDir(), "data"));
  const parts = [0, 1, 2].map((index) => bytesOf(4000, index));
  const names = ["flipped", "removed", "cut", "directory", "gone", "good"];
  await server.start();
  for (const name of names) {
    await server.must(201, "PUT", name, parts[0]);
    for (const part of parts.slice(1)) await server.must(204, "POST", name, part);
  }
  await server.end("SIGTERM");
  await server.start();
  // Loaded, and nothing of them read: what a reader of the tail does.
  for (const name of names) await server.must(200, "HEAD", name);
  const [flipped = "", removed = "", cut = "", directory = "", gone = ""] = names.map((name) => server.layout.streamDirectory(name));
  flipBit(segmentPath(flipped, 4000), randomOf(context));
  renameSync(segmentPath(removed, 4000), `${segmentPath(removed, 4000)}.away`);
  writeFileSync(segmentPath(cut, 4000), readFileSync(segmentPath(cut, 4000)).subarray(0, 1234));
  rmSync(segmentPath(directory, 8000));
  mkdirSync(segmentPath(directory, 8000));
  rmSync(gone, { recursive: true });

  for (const name of ["flipped", "removed", "cut"]) {
    // A reader from the beginning on gets what is sound, and then the end of a whole answer.
    const followed = await server.must(200, "GET", `${name}?offset=-1&live=sse`);
    assert.match(String(followed.body), /\n\n$/);
    const last = /id: (\S+)\n\n$/.exec(String(followed.body))?.[1] ?? "";
    await server.mustBeDamaged("GET", `${name}?live=sse&offset=${last}`);
    await server.mustBeDamaged("GET", `${name}?offset=${last}`);
    await server.must(204, "POST", name, "more");
  }
  // The write behind the journal meets what is in the way.
  for (const name of ["directory", "gone"]) await server.must(204, "POST", name, "more");
  await turnJournal(server);
  for (const name of ["directory", "gone"]) {
    await server.logged(new RegExp(`"a stream is damaged".*"${name}"`));
    await server.mustBeDamaged("POST", name, "even more");
    await server.mustBeDamaged("GET", name);
  }
  await server.end("SIGKILL");
  await server.start();
  for (const name of ["directory", "gone"]) await server.mustBeDamaged("GET", name);
  await server.must(200, "GET", "good");
  await server.end("SIGTERM");
});
