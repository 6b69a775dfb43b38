import assert from "node:assert/strict";
import { cpSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { Quarantine } from "../../../../src/storage/file/directory/quarantine.js";
import { surveyJournal } from "../../../../src/storage/file/survey/journal-survey.js";
import { sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { openOffline } from "../../../../src/storage/file/offline/offline.js";
import { checkStream } from "../../../../src/storage/file/survey/stream-check.js";
import { idsOf, StreamFactFinder, type FoundStream } from "../../../../src/storage/file/survey/stream-facts.js";
import { append, bytesOf, crash, created, forked, openEngine, remove, reopen, settled, loaded } from "../../../helpers/engine.js";
import { diskError, WatchedFiles } from "../../../helpers/watched-files.js";
import { trimBefore } from "../../../helpers/trim.js";

async function finderOf(dir: string): Promise<StreamFactFinder> {
  const directory = await openOffline(dir, false);
  return new StreamFactFinder(directory, await surveyJournal(directory));
}

function shown(found: FoundStream): unknown {
  return typeof found === "string" ? found : { earliest: found.earliest, tail: found.tail, forks: [...found.forks.values()] };
}

describe("the facts about a stream", () => {
  test("are what its sidecar and the journal say together", async () => {
    const first = await openEngine();
    await append(first.storage, await created(first.storage, "source", bytesOf(3000)), bytesOf(3000));
    const engine = await reopen(first);
    const { storage } = engine;
    const source = await loaded(storage, "source");
    const fork = await forked(storage, source, "fork", 4000, bytesOf(5000));
    await forked(storage, source, "second", 6000);
    await remove(storage, await forked(storage, source, "gone", 5000));
    trimBefore(storage, fork, 4000);
    await settled(storage, fork);
    const dir = await crash(engine);
    const facts = await finderOf(dir);
    assert.deepEqual(shown(await facts.find("source")), { earliest: 0, tail: 6000, forks: [0, 6000] });
    assert.deepEqual(shown(await facts.find("fork")), { earliest: 4000, tail: 9000, forks: [] });
    assert.equal(await facts.find("gone"), "missing");
    assert.equal(await facts.find("nobody"), "missing");
    assert.ok([...facts.unwritten()].some(({ name }) => name === "second"));
  });

  test("are not those of a stream in another's place, or that can't be read", async () => {
    const { dir, storage } = await openEngine();
    await created(storage, "one", "1");
    await created(storage, "two", "2");
    await storage.close();
    const directory = await openOffline(dir, false);
    const { layout } = directory;
    rmSync(layout.streamDirectory("one"), { recursive: true });
    cpSync(layout.streamDirectory("two"), layout.streamDirectory("one"), { recursive: true });
    const survey = await surveyJournal(directory);
    assert.equal(await new StreamFactFinder(directory, survey).find("one"), "missing");
    const files = new WatchedFiles();
    files.gate = ({ kind, path }) => (kind === "open" && path.endsWith("meta.json") ? diskError("EIO") : undefined);
    assert.equal(await new StreamFactFinder({ files, layout }, survey).find("two"), "damaged");
    rmSync(sidecarPath(layout.streamDirectory("two")));
    assert.equal(await new StreamFactFinder(directory, survey).find("two"), "damaged");
  });
});

test("a stream that is refused may have the ids that were kept of it", async () => {
  const { dir, storage } = await openEngine();
  const { id } = await created(storage, "one", "1");
  await storage.close();
  const { files, layout } = await openOffline(dir, false);
  const directory = layout.streamDirectory("one");
  const options = { files, layout, trimmedTo: 0, readSegments: false, onBytes: () => undefined };
  await new Quarantine({ files, layout }).refuse(directory, "why not");
  assert.deepEqual(await idsOf({ files, layout }, await checkStream(options, directory), undefined), [id]);
  rmSync(join(dirname(layout.streams), "damaged"), { recursive: true });
  assert.deepEqual(await idsOf({ files, layout }, await checkStream(options, directory), undefined), []);
});
