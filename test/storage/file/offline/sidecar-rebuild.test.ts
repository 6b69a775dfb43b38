import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import type { JournaledStream } from "../../../../src/storage/file/survey/journaled-stream.js";
import { Layout, segmentPath } from "../../../../src/storage/file/format/layout.js";
import type { Relatives } from "../../../../src/storage/file/offline/relatives.js";
import { rebuildSidecar, type RebuiltSidecar } from "../../../../src/storage/file/offline/sidecar-rebuild.js";
import { checkStream } from "../../../../src/storage/file/survey/stream-check.js";
import { configOf } from "../../../helpers/engine.js";
import { journaledStream } from "../../../helpers/journaled.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const files = systemFiles(false);
const ALONE: Relatives = { id: null, forkedFrom: null, keepsInherited: false, forks: null, lastPoint: 0 };

/** What is made of segments with this text at these starts, with what the journal knows. */
async function rebuild(
  segments: Readonly<Record<number, string>>,
  journal: Partial<JournaledStream> | null = null,
  relatives: Partial<Relatives> = {},
): Promise<RebuiltSidecar | string> {
  const layout = new Layout(tempDir());
  const directory = layout.streamDirectory("s");
  mkdirSync(directory, { recursive: true });
  for (const [start, text] of Object.entries(segments)) writeFileSync(segmentPath(directory, Number(start)), text);
  const checked = await checkStream({ files, layout }, directory);
  const identity = { id: "known", name: "s", config: configOf({ contentType: "text/plain", ttlSeconds: 5 }) };
  const journaled = journal === null ? undefined : journaledStream(identity, directory, journal);
  return rebuildSidecar({ files, apply: true, nowMs: 7 }, checked, journaled, { ...ALONE, ...relatives });
}

function extentOf(rebuilt: RebuiltSidecar | string): unknown {
  if (typeof rebuilt === "string") return rebuilt;
  const { id, config, state, segments } = rebuilt.sidecar;
  return {
    id: /^[0-9a-f]{24}$/.test(id) ? "new" : id,
    contentType: config.contentType,
    tail: state.tail,
    closed: state.closed,
    segments: segments.map(({ start, length }) => [start, length]),
  };
}

describe("a sidecar made anew", () => {
  const guessed = { id: "new", contentType: "application/octet-stream", closed: true };
  const known = { id: "known", contentType: "text/plain", closed: true };

  test("takes positions and lengths from the segments, and guesses the rest", async () => {
    assert.deepEqual(extentOf(await rebuild({ 0: "abc", 3: "de" })), {
      ...guessed,
      tail: 5,
      segments: [
        [0, 3],
        [3, 2],
      ],
    });
    assert.deepEqual(extentOf(await rebuild({ 0: "1,\n" })), { ...guessed, contentType: "application/json", tail: 3, segments: [[0, 3]] });
    assert.deepEqual(extentOf(await rebuild({})), { ...guessed, tail: 0, segments: [] });
  });

  test("may begin behind bytes that were removed", async () => {
    assert.deepEqual(extentOf(await rebuild({ 100: "abc" })), { ...guessed, tail: 103, segments: [[100, 3]] });
  });

  test("is not made where files overlap: a crash may have left one of them", async () => {
    assert.match(String(extentOf(await rebuild({ 0: "abcdef", 3: "de" }))), /its files overlap from 3 on/);
  });

  test("is not made over bytes that are missing", async () => {
    assert.match(String(extentOf(await rebuild({ 0: "ab", 3: "de" }))), /its bytes from 2 to 3 are missing/);
    assert.match(
      String(extentOf(await rebuild({ 0: "ab" }, { firstPosition: 3 }))),
      /its segments end at 2, but the journal says that it had 3 bytes/,
    );
  });

  test("ends where the journal goes on, which also knows the configuration", async () => {
    assert.deepEqual(extentOf(await rebuild({ 0: "abc", 3: "de" }, { firstPosition: 2 })), { ...known, tail: 2, segments: [[0, 2]] });
  });

  test("only takes the directory for a stream that the journal has whole", async () => {
    const rebuilt = await rebuild({ 0: "abc" }, { createdHere: true });
    assert.ok(typeof rebuilt !== "string");
    assert.deepEqual([rebuilt.sidecar.claimed, rebuilt.sidecar.id, rebuilt.sidecar.state.closed], [true, "known", false]);
    assert.match(rebuilt.unknown, /nothing is lost/);
  });

  test("is not made from what can't be read", async () => {
    const layout = new Layout(tempDir());
    const directory = layout.streamDirectory("s");
    mkdirSync(join(directory, "0000000000000000.seg"), { recursive: true });
    const checked = await checkStream({ files, layout }, directory);
    assert.match(String(await rebuildSidecar({ files, apply: false, nowMs: 0 }, checked, undefined, ALONE)), /can't be read: EISDIR/);
  });

  test("of a fork takes what it shares from its source, and its own bytes from its files", async () => {
    const forkedFrom = { name: "source", id: "s", point: 5, earliest: { position: 2, segmentStart: 1 }, offset: null, subOffset: 0 };
    const fork = { id: "fork", forkedFrom, keepsInherited: true };
    const rebuilt = await rebuild({ 5: "abc" }, null, fork);
    assert.deepEqual(extentOf(rebuilt), { ...guessed, id: "fork", tail: 8, segments: [[5, 3]] });
    assert.ok(typeof rebuilt !== "string");
    assert.deepEqual([rebuilt.sidecar.config.forkedFrom, rebuilt.sidecar.earliest], [forkedFrom, forkedFrom.earliest]);
    assert.match(rebuilt.unknown, /whether it has dropped any of what it shares with "source" is not known: it has all of it from 2 on/);
    assert.deepEqual(extentOf(await rebuild({}, null, fork)), { ...guessed, id: "fork", tail: 5, segments: [] });
    assert.match(String(await rebuild({ 7: "abc" }, null, fork)), /its bytes from 5 to 7 are missing/);
    const weaned = await rebuild({ 7: "abc" }, { firstPosition: 10 }, { ...fork, keepsInherited: false });
    assert.ok(typeof weaned !== "string");
    assert.deepEqual(weaned.sidecar.earliest, { position: 7, segmentStart: 7 });
    assert.match(weaned.unknown, /it begins at 7, and the offset that readers have for this place may be refused/);
  });

  test("of a source has its forks, and reaches to where the last of them begins", async () => {
    const forks = new Map([["f", 3]]);
    const rebuilt = await rebuild({ 0: "abcd" }, null, { id: "source", forks, lastPoint: 3 });
    assert.ok(typeof rebuilt !== "string");
    assert.deepEqual([rebuilt.sidecar.id, rebuilt.sidecar.forks], ["source", forks]);
    assert.match(rebuilt.unknown, /if it was deleted and kept for its forks, delete it again/);
    assert.match(
      String(await rebuild({ 0: "ab" }, null, { id: "source", forks, lastPoint: 3 })),
      /its segments end at 2, but a fork of it begins at 3/,
    );
  });
});
