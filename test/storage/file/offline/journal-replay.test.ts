import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { replayJournal, shortStreams } from "../../../../src/storage/file/offline/journal-replay.js";
import { surveyJournal } from "../../../../src/storage/file/survey/journal-survey.js";
import { readBase } from "../../../../src/storage/file/directory/catalog.js";
import { readMarker } from "../../../../src/storage/file/directory/marker.js";
import { Layout, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { append, configOf, crash, created, loaded, openEngine, openOnFiles, readAll, remove, reopen } from "../../../helpers/engine.js";
import { journaledStream } from "../../../helpers/journaled.js";
import { repairSteps } from "../../../helpers/repair-steps.js";
import { crashedWithThreeFiles } from "../../../helpers/several-journal-files.js";
import { diskError, JOURNAL, WatchedFiles } from "../../../helpers/watched-files.js";

test("a settled journal holds nothing, counts on, and nothing of it is kept", async (t) => {
  const engine = await openEngine();
  const stream = await created(engine.storage, "s", "one,");
  await append(engine.storage, stream, "two,");
  await append(engine.storage, await created(engine.storage, "gone", "x"), "y");
  await remove(engine.storage, await loaded(engine.storage, "gone"));
  const dir = await crash(engine);
  const files = new WatchedFiles();
  const layout = new Layout(dir);
  const directoryId = await readMarker(files, layout);
  assert.ok(directoryId !== null);
  const before = await surveyJournal({ files, layout, directoryId });
  assert.deepEqual(shortStreams(before), []);
  const left = await replayJournal(repairSteps({ files, layout, directoryId }), before, { short: [], lastBatch: before.lastBatch });
  assert.deepEqual(left, []);
  const after = await surveyJournal({ files, layout, directoryId });
  assert.deepEqual([after.files.length, after.streams.size, after.lastBatch], [1, 0, before.lastBatch + 1]);
  assert.ok(!existsSync(join(dir, "damaged")));
  assert.deepEqual(readdirSync(join(dir, "journal")).length, 1);

  const again = await openEngine({ dir });
  t.after(() => again.storage.close());
  const found = await loaded(again.storage, "s");
  assert.equal((await readAll(again.storage, found)).toString(), "one,two,");
  assert.equal(await again.storage.load("gone"), null);
});

test("journal files go one by one, oldest first: no loss of power leaves a gap between them", async () => {
  const { dir } = await crashedWithThreeFiles();
  const files = new WatchedFiles();
  const layout = new Layout(dir);
  const directoryId = await readMarker(files, layout);
  assert.ok(directoryId !== null);
  const survey = await surveyJournal({ files, layout, directoryId });
  await replayJournal(repairSteps({ files, layout, directoryId }), survey, { short: [], lastBatch: survey.lastBatch });
  const done = files.operations.filter(({ kind, path }) =>
    kind === "unlink" ? JOURNAL.test(path) : kind === "syncDirectory" && path === layout.journal,
  );
  const paths = survey.files.map(({ path }) => path);
  assert.equal(paths.length, 3);
  assert.deepEqual(
    done.slice(1).map(({ path }) => path),
    paths.flatMap((path) => [path, layout.journal]),
  );
});

for (const [what, deleted, createdHere, isLost] of [
  ["is of a deleted stream of the name", true, false, true],
  ["is of a deleted stream of the name, and the journal has its creation", true, true, false],
  ["is of another stream of the name", false, false, false],
] as const)
  test(`a stream is ${isLost ? "" : "not "}lost with all that it had where its directory ${what}`, async () => {
    const engine = await openOnFiles("s", "one,");
    const dir = await crash(engine);
    const [files, layout] = [new WatchedFiles(), new Layout(dir)];
    const directoryId = await readMarker(files, layout);
    assert.ok(directoryId !== null);
    const directory = layout.streamDirectory("s");
    const { own, read } = await readBase(files, "f".repeat(24), directory);
    assert.ok(own === null && read?.kind === "sound");
    const [earlier, later] = [read.sidecar.id, "f".repeat(24)].map((id) => ({ id, name: "s", config: configOf() }));
    assert.ok(earlier !== undefined && later !== undefined);
    const streams = [
      journaledStream(earlier, directory, { deleted, sidecar: read }),
      journaledStream(later, directory, { createdHere, sidecar: read }),
    ];
    const survey = await surveyJournal({ files, layout, directoryId });
    const short = shortStreams({ ...survey, streams: new Map(streams.map((stream) => [stream.identity.id, stream])) });
    assert.deepEqual(
      short.map(({ id, isLostWithAll }) => [id, isLostWithAll]),
      isLost ? [[later.id, true]] : [],
    );
  });

test("records of a stream whose sidecar is spoiled are kept for the next start, and told of", async (t) => {
  const engine = await openOnFiles("s", "one,");
  await append(engine.storage, await loaded(engine.storage, "s"), "two,");
  await created(engine.storage, "other", "not kept");
  // The journal file of the time before the start is done with, so that there is one.
  await engine.files.idle();
  const dir = await crash(engine);
  const files = new WatchedFiles();
  const layout = new Layout(dir);
  const directoryId = await readMarker(files, layout);
  assert.ok(directoryId !== null);
  const sidecar = sidecarPath(layout.streamDirectory("s"));
  renameSync(sidecar, join(dir, "away"));
  const survey = await surveyJournal({ files, layout, directoryId });
  const left = await replayJournal(repairSteps({ files, layout, directoryId }), survey, { short: [], lastBatch: survey.lastBatch });
  assert.deepEqual(
    left.map(({ name, damage }) => [name, damage?.problem]),
    [["s", "it is missing"]],
  );
  assert.ok(!existsSync(join(dir, "damaged")));
  assert.equal(readdirSync(layout.journal).filter((name) => name.endsWith(".kept")).length, survey.files.length);
  const after = await surveyJournal({ files, layout, directoryId });
  assert.deepEqual(
    [...after.streams.values()].map(({ identity, pendingRecords }) => [identity.name, pendingRecords]),
    [["s", 1]],
  );

  renameSync(join(dir, "away"), sidecar);
  const again = await openEngine({ dir });
  t.after(() => again.storage.close());
  assert.equal((await readAll(again.storage, await loaded(again.storage, "s"))).toString(), "one,two,");
});

for (const isLostWithAll of [false, true])
  test(`a stream ${isLostWithAll ? "that is lost with all it had" : "that lacks records"} is not refused while its sidecar can't be read`, async () => {
    const first = await openEngine();
    await created(first.storage, "s", "one,");
    const engine = await reopen(first);
    await append(engine.storage, await loaded(engine.storage, "s"), "two,");
    const dir = await crash(engine);
    const files = new WatchedFiles();
    const layout = new Layout(dir);
    const directoryId = await readMarker(files, layout);
    assert.ok(directoryId !== null);
    const directory = layout.streamDirectory("s");
    const before = readFileSync(sidecarPath(directory));
    files.gate = ({ kind, path }) => (kind === "read" && path === sidecarPath(directory) ? diskError("EIO") : undefined);
    const survey = await surveyJournal({ files, layout, directoryId });
    const [stream] = survey.streams.values();
    assert.ok(stream !== undefined);
    const short = [{ ...stream.identity, directory, reason: "as the test wants it", isLostWithAll }];
    const replayed = replayJournal(repairSteps({ files, layout, directoryId }), survey, { short, lastBatch: survey.lastBatch });
    await assert.rejects(replayed, { name: "DirectoryError", message: /meta\.json: it can't be read \(EIO\)$/ });
    assert.deepEqual(readFileSync(sidecarPath(directory)), before);
    assert.ok(!existsSync(layout.damaged));
  });
