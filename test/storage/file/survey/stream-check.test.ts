import assert from "node:assert/strict";
import { cpSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { systemFiles, type Files } from "../../../../src/storage/file/disk/files.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { encodeRefusal } from "../../../../src/storage/file/format/sidecar.js";
import { checkStream, type CheckedStream } from "../../../../src/storage/file/survey/stream-check.js";
import { append, changeSidecar, created, openEngine } from "../../../helpers/engine.js";
import { diskError, WatchedFiles } from "../../../helpers/watched-files.js";

const LONG = `long/${"n".repeat(300)}`;

async function closedDirectory(): Promise<Layout> {
  const { dir, storage } = await openEngine();
  await append(storage, await created(storage, "s", "x".repeat(3000)), "y".repeat(3000));
  await created(storage, LONG, "z");
  await storage.close();
  return new Layout(dir);
}

function check(layout: Layout, directory: string, files: Files = systemFiles(false), readSegments = true): Promise<CheckedStream> {
  return checkStream({ files, layout }, directory, { readSegments });
}

describe("the check of a stream's directory", () => {
  test("tells how much is done, up to the end", async () => {
    const layout = await closedDirectory();
    const steps: number[] = [];
    let bytes = 0;
    const onBytes = (count: number, done: number): void => {
      bytes += count;
      steps.push(done);
    };
    const { findings, sidecarBytes } = await checkStream({ files: systemFiles(false), layout }, layout.streamDirectory("s"), {
      readSegments: true,
      onBytes,
    });
    assert.deepEqual(findings, []);
    assert.equal(bytes, 6000 + (sidecarBytes?.length ?? 0));
    assert.ok(steps.at(-1) === 6000 / 6001 && steps[0] === 0);
  });

  test("takes the name from a damaged sidecar where the directory's is cut, if they agree", async () => {
    const layout = await closedDirectory();
    const directory = layout.streamDirectory(LONG);
    writeFileSync(join(directory, "meta.json"), `{\n"name": ${JSON.stringify(LONG)},\n`);
    const { name, sidecarState } = await check(layout, directory);
    assert.deepEqual([name, sidecarState], [LONG, "damaged"]);
    writeFileSync(join(directory, "meta.json"), '{\n"name": "other",\n');
    assert.equal((await check(layout, directory)).name, null);
    writeFileSync(join(directory, "meta.json"), '{\n"name": "oth\\er",\n');
    assert.equal((await check(layout, directory)).name, null);
  });

  test("says when two directories claim one name", async () => {
    const layout = await closedDirectory();
    const directory = layout.streamDirectory("s");
    const copy = join(dirname(directory), "t");
    cpSync(directory, copy, { recursive: true });
    assert.deepEqual((await check(layout, directory)).findings, []);
    assert.deepEqual(
      (await check(layout, copy)).findings.map(({ problem }) => problem),
      [`the directory is not the one for this name, which ${directory} claims too`],
    );
  });

  test("lets files be that wait to be removed, or that a crash left", async () => {
    const layout = await closedDirectory();
    const directory = layout.streamDirectory("s");
    writeFileSync(join(directory, "0000000000009000.seg"), "left");
    writeFileSync(join(directory, "meta.json.new"), "left");
    writeFileSync(join(directory, "meta.json.damaged.new"), "left");
    assert.deepEqual((await check(layout, directory)).findings, []);
  });

  test("goes on where something can't be read, and says so", async () => {
    const layout = await closedDirectory();
    const directory = layout.streamDirectory("s");
    for (const [kind, end, problem] of [
      ["open", "meta.json", /it can't be read: EIO/],
      ["read", "0000000000003000.seg", /it can't be read: EIO: positions 3000 to 6000/],
      ["list", "s", /it can't be read: EIO/],
    ] as const) {
      const files = new WatchedFiles();
      files.gate = (operation) => (operation.kind === kind && operation.path.endsWith(end) ? diskError("EIO") : undefined);
      const { findings } = await check(layout, directory, files);
      assert.match(findings.map((finding) => finding.problem).join(), problem, kind);
    }
    const busy = new WatchedFiles();
    busy.gate = ({ kind }) => (kind === "open" ? diskError("EMFILE") : undefined);
    await assert.rejects(check(layout, directory, busy), { code: "EMFILE" });
  });

  test("knows nothing of a stream without a sidecar whose files can't be listed", async () => {
    const layout = await closedDirectory();
    const directory = layout.streamDirectory("s");
    rmSync(join(directory, "meta.json"));
    const barred = new WatchedFiles();
    barred.gate = ({ kind }) => (kind === "list" ? diskError("EACCES") : undefined);
    assert.equal((await check(layout, directory, barred)).sidecarState, "unreadable");
    assert.equal((await check(layout, directory)).sidecarState, "missing");
  });

  test("knows a sidecar that is meant to refuse, one that is missing, and a directory that is none", async () => {
    const layout = await closedDirectory();
    const directory = layout.streamDirectory("s");
    writeFileSync(join(directory, "meta.json"), encodeRefusal("why not"));
    const refused = await check(layout, directory);
    assert.deepEqual([refused.sidecarState, refused.sidecarProblem, refused.starts], ["final", "why not", [0, 3000]]);
    renameSync(join(directory, "meta.json"), join(directory, "0000000000000000.seg"));
    const missing = await check(layout, directory, systemFiles(false), false);
    assert.deepEqual([missing.sidecarState, missing.findings], ["missing", []]);
    mkdirSync(join(directory, "..", "empty"));
    assert.deepEqual((await check(layout, join(directory, "..", "empty"))).findings, []);
    assert.ok(readdirSync(directory).length > 0);
  });

  test("expects a fork's own bytes behind those it shares or has dropped, and none of a stream that is not born yet", async () => {
    const layout = await closedDirectory();
    const directory = layout.streamDirectory("s");
    const path = join(directory, "meta.json");
    const forkedAt = (point: number, earliest: number, claimed = false): void =>
      changeSidecar(path, ({ config }) => {
        const forkedFrom = { name: "t", id: "0", point, earliest: { position: 0, segmentStart: 0 }, offset: null, subOffset: 0 };
        return { config: { ...config, forkedFrom }, earliest: { position: earliest, segmentStart: 0 }, claimed };
      });
    const problems = async (): Promise<string[]> => (await check(layout, directory)).findings.map(({ problem }) => problem);
    forkedAt(0, 0);
    assert.deepEqual(await problems(), []);
    forkedAt(2000, 0);
    assert.deepEqual(await problems(), ["a segment begins at 0, what comes before it ends at 2000"]);
    forkedAt(0, 3000);
    renameSync(join(directory, "0000000000000000.seg"), join(directory, "..", "elsewhere"));
    assert.deepEqual(await problems(), []);
    changeSidecar(path, ({ segments }) => ({ segments: segments.slice(1) }));
    forkedAt(3000, 0);
    assert.deepEqual(await problems(), []);
    changeSidecar(path, () => ({ segments: [] }));
    assert.deepEqual(await problems(), ["the segments end at 3000, the stream at 6000"]);
    forkedAt(3000, 0, true);
    assert.deepEqual(await problems(), []);
  });
});
