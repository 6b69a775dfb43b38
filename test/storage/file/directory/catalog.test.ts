import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { listStreams, readBase, readSidecar } from "../../../../src/storage/file/directory/catalog.js";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { coveredSidecarPath, Layout, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { encodeNotice, encodeRefusal, encodeSidecar } from "../../../../src/storage/file/format/sidecar.js";
import { MutableState } from "../../../../src/storage/state.js";
import { DamagedStreamError, StorageBusyError } from "../../../../src/storage/storage.js";
import { changeSidecar, configOf } from "../../../helpers/engine.js";
import { ManualClock } from "../../../helpers/manual-clock.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError, failing, WatchedFiles } from "../../../helpers/watched-files.js";

const files = systemFiles(false);

interface Put {
  readonly claimed?: boolean;
  readonly touchedAtMs?: number;
  readonly as?: string;
  /** Where its own bytes begin, and in which it shares those before. */
  readonly forkOf?: readonly [source: string, point: number];
  readonly earliest?: number;
  /** How long its segments are; each is as new as it ends. */
  readonly lengths?: readonly number[];
}

function put(layout: Layout, name: string, more: Put = {}): string {
  const directory = layout.streamDirectory(name);
  mkdirSync(directory, { recursive: true });
  const state = new MutableState();
  state.touchedAtMs = more.touchedAtMs ?? 0;
  const [source, point] = more.forkOf ?? [null, 0];
  const origin = { id: "i", point, earliest: { position: 0, segmentStart: 0 }, offset: null, subOffset: 0 };
  let tail = point;
  const segments = (more.lengths ?? []).map((length) => {
    const start = tail;
    tail += length;
    return { start, length, crc: 0, firstAtMs: start, newestAtMs: tail, index: "one" as const };
  });
  state.tail = tail;
  const sidecar = {
    id: "i",
    name: more.as ?? name,
    config: configOf(source === null ? {} : { forkedFrom: { name: source, ...origin } }),
    state,
    earliest: { position: more.earliest ?? 0, segmentStart: 0 },
    forks: null,
    softDeleted: false,
    segments,
    batch: 1,
    claimed: more.claimed ?? false,
  };
  writeFileSync(sidecarPath(directory), encodeSidecar(sidecar));
  return directory;
}

test("a stream's sidecar is found, and where there is no stream there is none", async () => {
  const layout = new Layout(tempDir());
  const read = await readSidecar(files, "s", put(layout, "s", { touchedAtMs: 5 }), 1);
  assert.ok(read !== null && !(read instanceof DamagedStreamError));
  assert.equal(read.state.touchedAtMs, 5);
  assert.equal(await readSidecar(files, "t", layout.streamDirectory("t"), 1), null);
  mkdirSync(layout.streamDirectory("t"), { recursive: true });
  assert.equal(await readSidecar(files, "t", layout.streamDirectory("t"), 1), null);
});

test("what is wrong with a sidecar is told with the stream and the file", async () => {
  const layout = new Layout(tempDir());
  const lost = put(layout, "lost");
  writeFileSync(segmentPath(lost, 0), "bytes");
  rmSync(sidecarPath(lost));
  const emptied = put(layout, "emptied");
  renameSync(sidecarPath(emptied), coveredSidecarPath(emptied));
  const torn = put(layout, "torn");
  writeFileSync(sidecarPath(torn), "{");
  const foreign = put(layout, "foreign", { as: "other" });
  for (const [name, directory, problem] of [
    ["lost", lost, /it is missing/],
    ["emptied", emptied, /it is missing/],
    ["torn", torn, /not a whole sidecar/],
    ["foreign", foreign, /it is that of "other"/],
  ] as const) {
    const read = await readSidecar(files, name, directory, 1);
    assert.ok(read instanceof DamagedStreamError);
    assert.equal(read.stream, name);
    assert.equal(read.file, sidecarPath(directory));
    assert.match(read.message, problem);
  }
});

test("the journal's records go on from a stream's own sidecar, also where a notice stands in its place", async () => {
  const layout = new Layout(tempDir());
  const directory = put(layout, "s");
  const notice = encodeNotice({ id: "i", name: "s", config: configOf() }, "gone");
  const look = async (id: string): Promise<unknown[]> => {
    const { own, isTold, isVacant, problem } = await readBase(files, id, directory);
    return [own?.id ?? null, isTold, isVacant, own === null ? problem : ""];
  };
  assert.deepEqual(await look("i"), ["i", false, false, ""]);
  assert.deepEqual(await look("another"), [null, false, false, 'it is that of "s"']);
  renameSync(sidecarPath(directory), coveredSidecarPath(directory));
  assert.deepEqual(await look("i"), [null, false, true, "it is missing"], "what is kept counts where a notice says so");
  writeFileSync(sidecarPath(directory), notice);
  assert.deepEqual(await look("i"), ["i", true, false, ""]);
  assert.deepEqual(await look("another"), [null, true, false, "gone"]);
  writeFileSync(coveredSidecarPath(directory), "spoiled");
  assert.deepEqual(await look("i"), [null, true, false, "gone"]);
  rmSync(coveredSidecarPath(directory));
  assert.deepEqual(await look("i"), [null, true, true, "gone"], "of a stream that never had one");
  writeFileSync(sidecarPath(directory), encodeRefusal("decided"));
  assert.deepEqual(await look("i"), [null, true, false, "decided"]);
  put(layout, "s", { claimed: true });
  assert.deepEqual(await look("another"), [null, false, true, 'it is that of "s"'], "of a stream that was never born");
});

test("a sidecar that can't be read, or that the journal does not know yet, is damage; too many open files are not", async () => {
  const layout = new Layout(tempDir());
  const directory = put(layout, "s");
  const watched = new WatchedFiles();
  for (const code of ["EACCES", "EIO", "ELOOP"]) {
    watched.gate = ({ kind }) => (kind === "open" ? diskError(code) : undefined);
    const read = await readSidecar(watched, "s", directory, 1);
    assert.ok(read instanceof DamagedStreamError && read.message.includes(code), code);
  }
  watched.gate = ({ kind }) => (kind === "open" ? diskError("EMFILE") : undefined);
  await assert.rejects(readSidecar(watched, "s", directory, 1), StorageBusyError);
  watched.gate = null;
  const newer = await readSidecar(watched, "s", directory, 0);
  assert.ok(newer instanceof DamagedStreamError);
  assert.equal(newer.problem, "it is of batch 1, but the journal ends with batch 0");
});

test("the list has every sound stream, and neither claims nor damage nor strangers", async () => {
  const layout = new Layout(tempDir());
  for (const name of ["a", "b/c", "D"]) put(layout, name, { touchedAtMs: 9 });
  put(layout, "claimed", { claimed: true });
  writeFileSync(sidecarPath(put(layout, "torn")), "{");
  mkdirSync(join(layout.streams, "00", "stranger"), { recursive: true });
  writeFileSync(join(layout.streams, "00", "file"), "");
  const names: string[] = [];
  for await (const { name, touchedAtMs } of listStreams({ files, layout, clock: new ManualClock() }, new Map(), () => assert.fail())) {
    names.push(name);
    assert.equal(touchedAtMs, 9);
  }
  assert.deepEqual(names.sort(), ["D", "a", "b/c"]);
});

test("the list passes over what can't be read, but ends where too many files are open", async () => {
  const layout = new Layout(tempDir());
  put(layout, "source", { lengths: [100] });
  put(layout, "fork", { forkOf: ["source", 100] });
  const watched = new WatchedFiles();
  const named = (shard: string): RegExp => new RegExp(`[\\\\/]${shard}$`);
  const gates = [
    failing("EACCES", ["list"], named(basename(dirname(layout.streamDirectory("fork"))))),
    failing("EACCES", ["open"], named("fork[\\\\/]meta\\.json")),
    failing("EMFILE", ["list"], named("streams")),
    failing("EMFILE", ["list"], named(basename(dirname(layout.streamDirectory("fork"))))),
    failing("ENFILE", ["open"], named("fork[\\\\/]meta\\.json")),
  ];
  const outcomes: string[] = [];
  for (const gate of gates) {
    watched.gate = gate;
    const names: string[] = [];
    const list = async (): Promise<void> => {
      for await (const { name } of listStreams({ files: watched, layout, clock: new ManualClock() }, new Map(), () => assert.fail()))
        names.push(name);
    };
    const fault = await list().then(
      () => "passed over",
      (error: unknown) => (error instanceof StorageBusyError ? "busy" : String(error)),
    );
    outcomes.push(`${fault}: ${names.includes("fork") ? "there" : "not there"}`);
  }
  assert.deepEqual(outcomes, ["passed over: not there", "passed over: not there", "busy: not there", "busy: not there", "busy: not there"]);
});

test("whether a fork has more than is kept is not known where too many files are open for its source", async () => {
  const layout = new Layout(tempDir());
  put(layout, "source", { lengths: [100, 100] });
  put(layout, "fork", { forkOf: ["source", 200] });
  const watched = new WatchedFiles();
  const limits = { maxBytes: 100, maxAgeMs: Infinity };
  for await (const { name, isExcess } of listStreams({ files: watched, layout, clock: new ManualClock() }, new Map(), () =>
    assert.fail(),
  )) {
    if (name !== "fork") continue;
    watched.gate = failing("EMFILE", ["open"], /meta\.json$/);
    await assert.rejects(async () => isExcess(limits, 0), StorageBusyError);
    watched.gate = failing("EIO", ["open"], /meta\.json$/);
    assert.equal(await isExcess(limits, 0), false);
    watched.gate = null;
    assert.equal(await isExcess(limits, 0), true);
  }
});

test("what the list says of more than is kept counts what a fork has from its sources", async () => {
  const layout = new Layout(tempDir());
  put(layout, "source", { lengths: [100, 100, 100] });
  put(layout, "fork", { forkOf: ["source", 250] });
  put(layout, "fork of a fork", { forkOf: ["fork", 250], lengths: [10] });
  put(layout, "trimmed", { forkOf: ["source", 250], earliest: 200, lengths: [10] });
  put(layout, "weaned", { forkOf: ["gone", 250], earliest: 250, lengths: [10] });
  put(layout, "stray", { forkOf: ["gone", 250], lengths: [10] });
  const excess: string[] = [];
  for await (const { name, isExcess } of listStreams({ files, layout, clock: new ManualClock() }, new Map(), () => assert.fail()))
    for (const [what, limits, nowMs] of [
      ["150 B", { maxBytes: 150, maxAgeMs: Infinity }, 0],
      ["151 B", { maxBytes: 151, maxAgeMs: Infinity }, 0],
      ["10 B", { maxBytes: 10, maxAgeMs: Infinity }, 0],
      ["1 ms at 101", { maxBytes: Infinity, maxAgeMs: 0 }, 101],
    ] as const)
      if (await isExcess(limits, nowMs)) excess.push(`${name}: ${what}`);
  assert.deepEqual(excess.sort(), [
    "fork of a fork: 1 ms at 101",
    "fork of a fork: 10 B",
    "fork of a fork: 150 B",
    "fork of a fork: 151 B",
    "fork: 1 ms at 101",
    "fork: 10 B",
    "fork: 150 B",
    "source: 1 ms at 101",
    "source: 10 B",
    "source: 150 B",
    "source: 151 B",
    "trimmed: 10 B",
  ]);
});

test("what the list says of more than is kept goes by what came after bytes that are dated in the future", async () => {
  const layout = new Layout(tempDir());
  for (const [name, lastAtMs] of [
    ["put right", 1000],
    ["still ahead", 9e12],
  ] as const) {
    const directory = put(layout, name, { lengths: [100, 100, 100] });
    changeSidecar(sidecarPath(directory), ({ segments }) => ({
      segments: segments.map((segment, index) => {
        const atMs = index === 2 ? lastAtMs : 9e12 - 1;
        return { ...segment, firstAtMs: atMs, newestAtMs: atMs };
      }),
    }));
  }
  const excess: string[] = [];
  for await (const { name, isExcess } of listStreams({ files, layout, clock: new ManualClock() }, new Map(), () => assert.fail()))
    for (const nowMs of [1500, 1501]) if (await isExcess({ maxBytes: Infinity, maxAgeMs: 500 }, nowMs)) excess.push(`${name} at ${nowMs}`);
  assert.deepEqual(excess, ["put right at 1501"]);
});

test("forks in a long row are looked at rather than kept for ever", async () => {
  const layout = new Layout(tempDir());
  put(layout, "0", { lengths: [100] });
  for (let depth = 1; depth <= 9; depth += 1) put(layout, String(depth), { forkOf: [String(depth - 1), 100] });
  const excess: string[] = [];
  for await (const { name, isExcess } of listStreams({ files, layout, clock: new ManualClock() }, new Map(), () => assert.fail()))
    if (await isExcess({ maxBytes: 90, maxAgeMs: Infinity }, 0)) excess.push(name);
  assert.deepEqual(excess.sort(), ["8", "9"]);
});

test("the list pauses after a few, so that it disturbs nobody", async () => {
  const layout = new Layout(tempDir());
  for (let index = 0; index < 40; index += 1) put(layout, `s${index}`);
  const watched = new WatchedFiles();
  const clock = new ManualClock();
  let found = 0;
  const whole = (async () => {
    for await (const _ of listStreams({ files: watched, layout, clock }, new Map(), () => assert.fail())) found += 1;
  })();
  await watched.idle();
  assert.ok(found > 0 && found <= 16, `${found} without a pause`);
  for (let pause = 0; pause < 3; pause += 1) {
    clock.advance(10);
    await watched.idle();
  }
  await whole;
  assert.equal(found, 40);
});
