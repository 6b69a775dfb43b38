import assert from "node:assert/strict";
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { surveyJournal, type Survey } from "../../../../src/storage/file/survey/journal-survey.js";
import { openOffline } from "../../../../src/storage/file/offline/offline.js";
import { crashedWithThreeFiles, journalFiles } from "../../../helpers/several-journal-files.js";
import { fileIn, flipBit } from "../../../helpers/spoilt-files.js";
import { Barrier } from "../../../helpers/watched-files.js";
import { append, bytesOf, crash, created, forked, loaded, openEngine, openOnFiles, remove } from "../../../helpers/engine.js";

async function survey(dir: string): Promise<Survey> {
  return surveyJournal(await openOffline(dir, false));
}

function named({ streams }: Survey): Record<string, unknown> {
  return Object.fromEntries(
    [...streams.values()].map(({ identity, tail, deleted, createdHere, pendingRecords }) => [
      identity.name,
      { tail, deleted, createdHere, pendingRecords },
    ]),
  );
}

describe("the survey of a journal", () => {
  test("tells of each stream where it ends, whether it is there, and what its files lack", async () => {
    const engine = await openOnFiles("old", "12345");
    await append(engine.storage, await loaded(engine.storage, "old"), "678");
    await created(engine.storage, "new", bytesOf(5000)); // past the journal
    await remove(engine.storage, await created(engine.storage, "gone", "x"));
    const found = await survey(await crash(engine));
    assert.deepEqual(named(found), {
      old: { tail: 8, deleted: false, createdHere: false, pendingRecords: 1 },
      new: { tail: 5000, deleted: false, createdHere: true, pendingRecords: 1 },
      gone: { tail: 1, deleted: true, createdHere: true, pendingRecords: 1 },
    });
    const bypassed = [...found.streams.values()].flatMap((stream) => stream.bypassed);
    assert.deepEqual(
      bypassed.map(({ position, length }) => [position, length]),
      [[0, 5000]],
    );
    assert.deepEqual([found.damages, found.foreign], [[], null]);
  });

  test("finds records that do not follow what the sidecar says", async () => {
    const engine = await openOnFiles("s", "12345");
    const stream = await loaded(engine.storage, "s");
    const sidecar = readdirSync(engine.dir, { recursive: true, encoding: "utf8" }).find((path) => path.endsWith("meta.json")) ?? "";
    const old = readFileSync(join(engine.dir, sidecar));
    await append(engine.storage, stream, "678");
    await engine.storage.close();
    const last = await openEngine({ dir: engine.dir });
    await append(last.storage, await loaded(last.storage, "s"), "9");
    const dir = await crash(last);
    writeFileSync(join(dir, sidecar), old);
    const [found] = [...(await survey(dir)).streams.values()];
    assert.deepEqual([found?.gap?.position, found?.gap?.tail, found?.tail], [8, 5, 5]);
  });

  test("says of a file that is missing between others what is behind it", async () => {
    const engine = await openEngine();
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? new Promise(() => undefined) : undefined);
    const stream = await created(engine.storage, "s");
    await created(engine.storage, "quiet", "x");
    for (let index = 0; journalFiles(engine.dir).length < 4; index += 1) await append(engine.storage, stream, bytesOf(1500, index));
    const dir = await crash(engine);
    const [, second] = journalFiles(dir);
    rmSync(second ?? "");
    const { damages, streams } = await survey(dir);
    assert.match(damages[0]?.problem ?? "", /^batch \d+ follows batch \d+$/);
    assert.deepEqual(
      [...(damages[0]?.behind ?? [])].map((id) => streams.get(id)?.identity.name),
      ["s"],
    );
    assert.ok([...streams.values()].find(({ identity }) => identity.name === "s")?.gap !== null);
  });

  test("takes the journal of another directory for what it is", async () => {
    const other = await openEngine();
    await created(other.storage, "s", "x");
    const engine = await openEngine();
    await created(engine.storage, "t", "x");
    const dir = await crash(engine);
    const [path] = journalFiles(dir);
    copyFileSync(journalFiles(await crash(other))[0] ?? "", path ?? "");
    const { foreign, streams, lastBatch } = await survey(dir);
    assert.deepEqual([foreign, streams.size, lastBatch], [path, 0, 0]);
  });

  test("tells where forks begin, and what sources learn of them", async () => {
    const engine = await openEngine();
    const { storage } = engine;
    const source = await created(storage, "source", "12345");
    const small = await forked(storage, source, "small", 3, "ab");
    const large = await forked(storage, source, "large", 4, bytesOf(5000)); // past the journal: its directory is taken before
    const gone = await forked(storage, source, "gone");
    await remove(storage, gone);
    const found = await survey(await crash(engine));
    assert.deepEqual(named(found), {
      source: { tail: 5, deleted: false, createdHere: true, pendingRecords: 5 },
      small: { tail: 5, deleted: false, createdHere: true, pendingRecords: 1 },
      large: { tail: 5004, deleted: false, createdHere: true, pendingRecords: 1 },
      gone: { tail: 5, deleted: true, createdHere: true, pendingRecords: 1 },
    });
    assert.deepEqual(
      [...(found.streams.get(source.id)?.forkChanges ?? [])],
      [
        [small.id, 3],
        [large.id, 4],
        [gone.id, null],
      ],
    );
    assert.deepEqual(
      [...found.streams.values()].map(({ gap, firstPosition }) => [gap, firstPosition]),
      [
        [null, 0],
        [null, 3],
        [null, 4],
        [null, 5],
      ],
    );
  });

  test("knows a record's stream by a damaged record that names it, and counts those that nobody can give to one", async () => {
    const engine = await openOnFiles("s", "old,");
    const stream = await loaded(engine.storage, "s");
    for (const part of ["1,", "2,", "3,"]) await append(engine.storage, stream, part);
    const dir = await crash(engine);
    const [path = ""] = journalFiles(dir).slice(-1);
    flipBit(path, 520);
    const [place] = (await survey(dir)).damages;
    assert.deepEqual(
      [[...(place?.suspects ?? [])], [...(place?.behind ?? [])], place?.others, place?.strayRecords],
      [[stream.id], [stream.id], "nobody", 0],
    );
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0, 512, 1024));
    const {
      damages: [zeros],
      streams,
    } = await survey(dir);
    assert.deepEqual([zeros?.others, zeros?.strayRecords, streams.size], ["anybody", 2, 0]);
  });

  test("knows that only streams of before can have lost something where a file bound no others", async () => {
    const engine = await openEngine();
    const bound = [];
    for (const name of ["a", "b"]) bound.push(await created(engine.storage, name, "x"));
    for (const stream of bound) await append(engine.storage, stream, "y");
    const dir = await crash(engine);
    const [path = ""] = journalFiles(dir);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0, 3 * 512, 4 * 512));
    const [place] = (await survey(dir)).damages;
    assert.deepEqual(place?.others, new Set(bound.map(({ id }) => id)));
  });

  test("knows no more of that where an earlier damage of the file hides who was bound", async () => {
    const engine = await openEngine();
    const bound = [];
    for (const name of ["a", "b"]) bound.push(await created(engine.storage, name, "x"));
    for (const part of ["y", "z"]) for (const stream of bound) await append(engine.storage, stream, part);
    const dir = await crash(engine);
    const [path = ""] = journalFiles(dir);
    const bytes = readFileSync(path);
    // The creation of the first, and the first append of the second.
    writeFileSync(path, bytes.fill(0, 512, 2 * 512).fill(0, 4 * 512, 5 * 512));
    const { damages } = await survey(dir);
    assert.deepEqual(
      damages.map(({ others }) => others),
      ["anybody", "anybody"],
    );
    assert.deepEqual(
      damages.map(({ strayRecords }) => strayRecords),
      [1, 1],
    );
  });

  test("goes by a damaged record for what is behind it, also for a stream that has no files yet", async () => {
    const { dir, stream } = await crashedWithThreeFiles();
    const [, second = ""] = journalFiles(dir);
    flipBit(second, 30);
    const { files } = await survey(dir);
    assert.deepEqual(
      files.map(({ bindings }) => [...bindings.values()].map(({ id }) => id)),
      [[], [stream.id], []],
    );
  });

  test("finds the end of a file damaged that looked like a torn write until the next file went on", async () => {
    const { dir, stream } = await crashedWithThreeFiles();
    const [first = "", second] = journalFiles(dir);
    const bytes = readFileSync(first);
    const last = bytes.lastIndexOf("SDJ1");
    flipBit(first, last + 30);
    const [place] = (await survey(dir)).damages;
    assert.deepEqual(
      [place?.file, place?.problem.replace(/\d+/g, "N"), [...(place?.suspects ?? [])], place?.others],
      [second, "batch N follows batch N", [stream.id], "nobody"],
    );
  });

  test("knows who was deleted where only a damaged record names it and its sidecar is lost: its files go", async () => {
    const engine = await openOnFiles("s", "old,");
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.endsWith("s") ? new Barrier().opened : undefined);
    const stream = await loaded(engine.storage, "s");
    await append(engine.storage, stream, "1,");
    await remove(engine.storage, stream);
    const dir = await crash(engine);
    const [path = ""] = journalFiles(dir).slice(-1);
    flipBit(path, 520);
    rmSync(fileIn(dir, "meta.json"));
    const { files, streams } = await survey(dir);
    assert.equal(streams.get(stream.id)?.deleted, true);
    assert.deepEqual(
      files.flatMap(({ bindings }) => [...bindings.values()].map(({ id }) => id)),
      [stream.id],
    );
  });

  test("does not take the first file for one that never had a record where nothing sound says how long it was", async () => {
    const engine = await openEngine();
    await created(engine.storage, "s", "x");
    const dir = await crash(engine);
    const [path = ""] = journalFiles(dir);
    const bytes = readFileSync(path);
    // What is left looks like the beginning of a file without records.
    const head = Buffer.concat([bytes.subarray(0, 17), Buffer.alloc(441 - 17)]);
    for (const [length, others] of [
      [441, "anybody"],
      [512, "anybody"],
      [1024, "nobody"],
    ] as const) {
      writeFileSync(path, Buffer.concat([head, Buffer.alloc(length - head.length)]));
      assert.equal((await survey(dir)).damages[0]?.others, others, `${length} bytes`);
    }
  });
});
