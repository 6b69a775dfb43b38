import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { surveyJournal } from "../../../../src/storage/file/survey/journal-survey.js";
import { openOffline } from "../../../../src/storage/file/offline/offline.js";
import { checkStream, type CheckedStream } from "../../../../src/storage/file/survey/stream-check.js";
import { StreamFactFinder } from "../../../../src/storage/file/survey/stream-facts.js";
import { unprovenStreams } from "../../../../src/storage/file/offline/unproven-streams.js";
import { append, crash, created, loaded, openEngine, recordOf, reopen, type Engine } from "../../../helpers/engine.js";

/** The names of those that are not proven to be whole in what a killed engine left, when these frames of its journal are zeros. */
async function unproven(engine: Engine, ...frames: number[]): Promise<string[]> {
  const dir = await crash(engine);
  const path = join(
    dir,
    "journal",
    readdirSync(join(dir, "journal"))
      .filter((name) => name.endsWith(".journal"))
      .sort()
      .at(-1) ?? "",
  );
  const bytes = readFileSync(path);
  for (const frame of frames) bytes.fill(0, frame * 512, (frame + 1) * 512);
  writeFileSync(path, bytes);
  const directory = await openOffline(dir, false);
  const survey = await surveyJournal(directory);
  const { layout, files } = directory;
  async function* streams(): AsyncGenerator<CheckedStream> {
    for (const name of ["quiet", "closed", "busy", "late"]) {
      const path = layout.streamDirectory(name);
      if ((await files.list(path)).length > 0) yield await checkStream(directory, path);
    }
  }
  return (await unprovenStreams(survey, new StreamFactFinder(directory, survey), streams())).map(({ name }) => name).sort();
}

/** `quiet`, `closed` and `busy` have files of their own; the journal has one empty frame. */
async function served(): Promise<Engine> {
  const first = await openEngine();
  for (const name of ["quiet", "closed", "busy"]) await created(first.storage, name, "x");
  await append(first.storage, await loaded(first.storage, "closed"), recordOf("", { closes: true }));
  return reopen(first);
}

describe("a stream is not proven to be whole", () => {
  test("where it is open and nothing was written to it behind the damage", async () => {
    const engine = await served();
    const busy = await loaded(engine.storage, "busy");
    await append(engine.storage, await loaded(engine.storage, "quiet"), "1"); // frame 1
    await append(engine.storage, busy, "2"); // frame 2
    await append(engine.storage, busy, "3"); // frame 3
    assert.deepEqual(await unproven(engine), []);
    // What busy had in frame 2 is lost for certain, and so it is none of these.
    assert.deepEqual(await unproven(engine, 1), ["quiet"]);
  });

  test("unless its own files hold all that the journal had, or it was made later", async () => {
    const engine = await served();
    const quiet = await loaded(engine.storage, "quiet");
    await append(engine.storage, await loaded(engine.storage, "busy"), "1"); // frame 1
    await append(engine.storage, quiet, "2"); // frame 2
    await engine.storage.persist(quiet);
    await created(engine.storage, "late", "3"); // frame 3
    assert.deepEqual(await unproven(engine, 1), ["busy"]);
  });

  test("nor is one that only the journal has", async () => {
    const engine = await served();
    await created(engine.storage, "late", "1"); // frame 1
    await append(engine.storage, await loaded(engine.storage, "busy"), "2"); // frame 2
    await append(engine.storage, await loaded(engine.storage, "quiet"), "3"); // frame 3
    assert.deepEqual(await unproven(engine, 2), ["busy", "late"]);
  });
});
