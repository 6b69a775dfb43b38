import assert from "node:assert/strict";
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, describe, test } from "node:test";
import { openOffline } from "../../../src/storage/file/offline.js";
import { verifyDirectory, type Finding, type VerifyProgress, type VerifySummary } from "../../../src/storage/file/verify.js";
import { append, bytesOf, crash, created, openEngine, remove, startCreate } from "../../helpers/engine.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { Barrier } from "../../helpers/watched-files.js";

interface Verified {
  readonly findings: Finding[];
  readonly progress: VerifyProgress[];
  readonly summary: VerifySummary;
}

async function verify(dir: string): Promise<Verified> {
  const findings: Finding[] = [];
  const progress: VerifyProgress[] = [];
  const directory = await openOffline(dir);
  const report = (finding: Finding): void => void findings.push(finding);
  const summary = await verifyDirectory({ ...directory, report, progress: (state) => void progress.push(state) });
  return { findings, progress, summary };
}

/** The one file under `dir` whose path ends like this. */
function find(dir: string, end: string): string {
  const paths = readdirSync(dir, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(end));
  assert.equal(paths.length, 1, `${paths.length} files end with ${end}`);
  return join(dir, paths[0] ?? "");
}

function flip(path: string, offset: number): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(offset) ^ 4, offset);
  writeFileSync(path, bytes);
}

describe("a directory that was closed", () => {
  let sound = "";
  before(async () => {
    const { dir, storage } = await openEngine();
    const stream = await created(storage, "chat", "x".repeat(3000));
    await append(storage, stream, "y".repeat(3000));
    await created(storage, "other", "z");
    await storage.close();
    sound = dir;
  });

  /** A copy to do harm to. */
  function copy(): string {
    const dir = join(tempDir(), "data");
    cpSync(sound, dir, { recursive: true });
    return dir;
  }

  test("has nothing to be found", async () => {
    const { findings, summary, progress } = await verify(copy());
    assert.deepEqual(findings, []);
    assert.deepEqual([summary.streams, summary.journalFiles, summary.findings], [2, 1, 0]);
    assert.ok(summary.bytes > 6001);
    assert.equal(progress.length, 2);
    assert.ok(progress.every(({ done }) => done >= 0 && done < 1));
  });

  const harms: readonly [name: string, harm: (dir: string) => string, stream: string | null, problem: RegExp][] = [
    ["a flipped bit in a segment", (dir) => touch(find(dir, "chat/0000000000000000.seg"), (path) => flip(path, 2999)), "chat", /first 3000 bytes do not match/],
    ["a segment that lost its end", (dir) => touch(find(dir, "chat/0000000000003000.seg"), (path) => truncateSync(path, 2999)), "chat", /has 2999 bytes of 3000/],
    ["a segment that is gone", (dir) => touch(find(dir, "chat/0000000000003000.seg"), (path) => rmSync(path)), "chat", /^it is missing$/],
    ["a flipped bit in a sidecar", (dir) => touch(find(dir, "chat/meta.json"), (path) => flip(path, 40)), null, /checksum does not match/],
    ["a sidecar that is gone", (dir) => touch(find(dir, "chat/meta.json"), (path) => rmSync(path)), null, /^it is missing$/],
    ["a directory with another name", (dir) => touch(join(dirname(dirname(find(dir, "chat/meta.json"))), "chet"), (path) => renameSync(join(dirname(path), "chat"), path)), "chat", /not the one for this name/],
    ["a journal that is gone", (dir) => touch(join(dir, "journal"), (path) => rmSync(path, { recursive: true })), null, /journal is missing/],
  ];
  for (const [name, harm, stream, problem] of harms) {
    test(`shows ${name}, and only that`, async () => {
      const dir = copy();
      const file = harm(dir);
      const { findings, summary } = await verify(dir);
      assert.equal(summary.findings, 1);
      assert.deepEqual([findings[0]?.stream, findings[0]?.file], [stream, file]);
      assert.match(findings[0]?.problem ?? "", problem);
    });
  }
});

function touch(path: string, harm: (path: string) => void): string {
  harm(path);
  return path;
}

test("after a crash a stream that only the journal knows is no finding, and damage in the journal names the byte", async () => {
  const engine = await openEngine();
  await created(engine.storage, "chat", "hello");
  await created(engine.storage, "other", "world");
  const dir = await crash(engine);
  assert.deepEqual((await verify(dir)).findings, []);
  const journal = find(join(dir, "journal"), ".journal");
  flip(journal, 512 + 60);
  const { findings } = await verify(dir);
  assert.equal(findings.length, 1);
  assert.deepEqual([findings[0]?.file, findings[0]?.offset], [journal, 512]);
});

test("after a crash a large payload that only its segment holds is compared with its record", async () => {
  const engine = await openEngine();
  await append(engine.storage, await created(engine.storage, "chat", "small"), bytesOf(4096));
  const dir = await crash(engine);
  assert.deepEqual((await verify(dir)).findings, []);
  const segment = find(dir, "chat/0000000000000005.seg");
  flip(segment, 4095);
  const { findings } = await verify(dir);
  assert.deepEqual(findings, [{ stream: "chat", file: segment, offset: 0, problem: "the 4096 bytes there do not match their checksum in the journal" }]);
  truncateSync(segment, 4000);
  assert.match((await verify(dir)).findings[0]?.problem ?? "", /has 4000 bytes of 4096/);
  rmSync(segment);
  assert.match((await verify(dir)).findings[0]?.problem ?? "", /it is missing/);
});

test("a journal file without frames before one that has some is a finding", async () => {
  const engine = await openEngine();
  await created(engine.storage, "chat", "hello");
  const dir = await crash(engine);
  const empty = join(dir, "journal", "0000000000000000.journal");
  writeFileSync(empty, Buffer.alloc(4096));
  assert.deepEqual((await verify(dir)).findings, [{ stream: null, file: empty, offset: 0, problem: "it has no sound record, but a later file has" }]);
});

test("after a crash what is left of a stream that was deleted, or never created, is no finding", async () => {
  const engine = await openEngine();
  const stream = await created(engine.storage, "gone", bytesOf(5000));
  await engine.storage.persist(stream);
  engine.files.gate = ({ kind, path }) => (kind === "rename" && path.endsWith("gone") ? new Barrier().opened : undefined);
  await remove(engine.storage, stream);
  await engine.files.idle();
  engine.files.gate = ({ kind }) => (kind === "writeThen" ? new Barrier().opened : undefined);
  startCreate(engine.storage, "unborn", bytesOf(6000));
  await engine.files.idle();
  const dir = await crash(engine);
  rmSync(find(dir, "gone/0000000000000000.seg"));
  assert.ok(find(dir, "unborn/meta.json"));
  assert.deepEqual((await verify(dir)).findings, []);
});
