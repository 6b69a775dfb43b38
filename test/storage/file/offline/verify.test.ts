import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { before, describe, test } from "node:test";
import { systemClock } from "../../../../src/ops/clock.js";
import { openOffline } from "../../../../src/storage/file/offline/offline.js";
import { encodeRefusal } from "../../../../src/storage/file/format/sidecar.js";
import { verifyDirectory, type Finding, type VerifyProgress, type VerifySummary } from "../../../../src/storage/file/offline/verify.js";
import { closedFamily } from "../../../helpers/closed-directory.js";
import {
  append,
  bytesOf,
  changeSidecar,
  copyOf,
  crash,
  created,
  forked,
  loaded,
  openEngine,
  openFor,
  openOnFiles,
  originAt,
  remove,
  settled,
  startCreate,
} from "../../../helpers/engine.js";
import { filesWith, makeBackup } from "../../../helpers/backup.js";
import { fileIn, flipBit } from "../../../helpers/spoilt-files.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { Barrier } from "../../../helpers/watched-files.js";
import { trimBefore } from "../../../helpers/trim.js";

interface Verified {
  readonly findings: Finding[];
  readonly progress: VerifyProgress[];
  readonly summary: VerifySummary;
}

async function verify(dir: string): Promise<Verified> {
  const findings: Finding[] = [];
  const progress: VerifyProgress[] = [];
  const directory = await openOffline(dir, false);
  const report = (finding: Finding): void => void findings.push(finding);
  const summary = await verifyDirectory({ ...directory, report, progress: (state) => void progress.push(state) });
  return { findings, progress, summary };
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
  const copy = (): string => copyOf(sound);

  test("has nothing to be found", async () => {
    const { findings, summary, progress } = await verify(copy());
    assert.deepEqual(findings, []);
    assert.deepEqual([summary.streams, summary.journalFiles, summary.findings], [2, 1, 0]);
    assert.ok(summary.bytes > 6001);
    const parts = progress.map(({ done }) => done);
    assert.deepEqual(
      parts,
      parts.toSorted((left, right) => left - right),
      "it never goes back",
    );
    assert.ok(
      parts.some((done) => done > 0 && done < 0.5),
      "it moves within a stream",
    );
    assert.equal(parts.at(-1), 1);
    assert.equal(progress.at(-1)?.bytes, summary.bytes);
  });

  const harms: readonly [name: string, harm: (dir: string) => string, stream: string | null, problem: RegExp][] = [
    [
      "a flipped bit in a segment",
      (dir) => touch(fileIn(dir, "chat/0000000000000000.seg"), (path) => flipBit(path, 2999)),
      "chat",
      /first 3000 bytes do not match/,
    ],
    [
      "a segment that lost its end",
      (dir) => touch(fileIn(dir, "chat/0000000000003000.seg"), (path) => truncateSync(path, 2999)),
      "chat",
      /has 2999 bytes of 3000/,
    ],
    [
      "a segment that is gone",
      (dir) => touch(fileIn(dir, "chat/0000000000003000.seg"), (path) => rmSync(path)),
      "chat",
      /^it is missing: positions 3000 to 6000 of the stream$/,
    ],
    [
      "a flipped bit in a sidecar",
      (dir) => touch(fileIn(dir, "chat/meta.json"), (path) => flipBit(path, 40)),
      "chat",
      /checksum does not match/,
    ],
    ["a sidecar that is gone", (dir) => touch(fileIn(dir, "chat/meta.json"), (path) => rmSync(path)), "chat", /^it is missing$/],
    [
      "a directory with another name",
      (dir) =>
        touch(join(dirname(dirname(fileIn(dir, "chat/meta.json"))), "chet"), (path) => renameSync(join(dirname(path), "chat"), path)),
      "chat",
      /not the one for this name/,
    ],
    [
      "a file that nobody put there",
      (dir) => touch(join(dirname(fileIn(dir, "chat/meta.json")), "core"), (path) => writeFileSync(path, "")),
      "chat",
      /no file of a stream/,
    ],
    [
      "a directory in the place of a segment",
      (dir) => touch(fileIn(dir, "chat/0000000000003000.seg"), (path) => (rmSync(path), mkdirSync(path))),
      "chat",
      /it can't be read: EISDIR/,
    ],
    [
      "a pipe in the place of a segment",
      (dir) => touch(fileIn(dir, "chat/0000000000003000.seg"), (path) => (rmSync(path), execFileSync("mkfifo", [path]))),
      "chat",
      /it has 0 bytes of 3000/,
    ],
    [
      "a file in the place of a stream",
      (dir) => touch(join(dirname(dirname(fileIn(dir, "chat/meta.json"))), "x"), (path) => writeFileSync(path, "")),
      null,
      /it is no directory/,
    ],
    [
      "a file in the place of the streams of a shard",
      (dir) => touch(join(dir, "streams/xyz"), (path) => writeFileSync(path, "")),
      null,
      /no directory of streams/,
    ],
    [
      "a file in the place of a shard",
      (dir) =>
        touch(dirname(dirname(fileIn(dir, "chat/meta.json"))), (path) => (rmSync(path, { recursive: true }), writeFileSync(path, ""))),
      null,
      /it is no directory/,
    ],
    [
      "a circle of links",
      (dir) => touch(fileIn(dir, "chat/0000000000003000.seg"), (path) => (rmSync(path), symlinkSync(path, path))),
      "chat",
      /it can't be read: ELOOP/,
    ],
    [
      "a journal that is gone",
      (dir) => touch(join(dir, "journal"), (path) => rmSync(path, { recursive: true })),
      null,
      /journal is missing/,
    ],
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
  const journal = fileIn(join(dir, "journal"), ".journal");
  flipBit(journal, 512 + 60);
  const { findings } = await verify(dir);
  assert.equal(findings.length, 1);
  assert.deepEqual([findings[0]?.file, findings[0]?.offset], [journal, 512]);
});

test("damage in the journal is told once, with the streams that it concerns; what does no harm is a note", async () => {
  const engine = await openEngine();
  const stream = await created(engine.storage, "chat", "hello");
  await created(engine.storage, "other", "world");
  await append(engine.storage, stream, "again");
  await append(engine.storage, stream, "and again");
  const dir = await crash(engine);
  const journal = fileIn(join(dir, "journal"), ".journal");
  flipBit(journal, 3 * 512 + 82);
  writeFileSync(join(dir, "notes.txt"), "");
  writeFileSync(join(dir, "journal/x"), "");
  for (const name of ["lock", "lock.0123456789abcdef.sock"]) writeFileSync(join(dir, name), "");
  const { findings, summary } = await verify(dir);
  assert.deepEqual(
    findings.map(({ file, offset }) => [file, offset]),
    [
      [journal, 1536],
      [journal, 2048],
    ],
  );
  assert.match(
    findings[0]?.problem ?? "",
    /^sound records follow at byte 2048; it seems to hold records of "chat"; records behind it are of "chat"$/,
  );
  assert.deepEqual([findings[1]?.stream, findings[1]?.problem], ["chat", "it goes on at position 10, but the stream ends at 5"]);
  assert.deepEqual(summary.notes, [`${join(dir, "notes.txt")} is not streamdir's`, `${join(dir, "journal/x")} is no journal file`]);
});

test("a large append that only the journal vouches for is compared with its checksum", async () => {
  const engine = await openEngine();
  await created(engine.storage, "big", "x".repeat(5000));
  const dir = await crash(engine);
  assert.deepEqual((await verify(dir)).findings, []);
  const segment = fileIn(dir, "big/0000000000000000.seg");
  flipBit(segment, 4999);
  const { findings } = await verify(dir);
  assert.deepEqual(findings, [
    { stream: "big", file: segment, offset: 0, problem: "an append in it does not match its checksum: positions 0 to 5000 of the stream" },
  ]);
});

test("a stream whose directory is gone, though the journal goes on with it, is found", async () => {
  const engine = await openOnFiles("s", "one");
  await append(engine.storage, await loaded(engine.storage, "s"), "two");
  const dir = await crash(engine);
  rmSync(dirname(fileIn(dir, "s/meta.json")), { recursive: true });
  const { findings } = await verify(dir);
  assert.deepEqual(
    findings.map(({ stream, problem }) => [stream, problem]),
    [["s", "it is missing"]],
  );
});

test("after a crash a large payload that only its segment holds is compared with its record", async () => {
  const engine = await openEngine();
  await append(engine.storage, await created(engine.storage, "chat", "small"), bytesOf(4096));
  const dir = await crash(engine);
  assert.deepEqual((await verify(dir)).findings, []);
  const segment = fileIn(dir, "chat/0000000000000005.seg");
  flipBit(segment, 4095);
  const { findings } = await verify(dir);
  assert.deepEqual(findings, [
    { stream: "chat", file: segment, offset: 0, problem: "an append in it does not match its checksum: positions 5 to 4101 of the stream" },
  ]);
  truncateSync(segment, 4000);
  assert.equal((await verify(dir)).findings.length, 1);
  rmSync(segment);
  assert.equal((await verify(dir)).findings.length, 1);
});

test("a journal file without frames before one that has some is a finding", async () => {
  const engine = await openEngine();
  await created(engine.storage, "chat", "hello");
  const dir = await crash(engine);
  const empty = join(dir, "journal", "0000000000000000.journal");
  writeFileSync(empty, Buffer.alloc(4096));
  assert.deepEqual((await verify(dir)).findings, [
    {
      stream: null,
      file: empty,
      offset: 0,
      problem: 'it has no sound record, but a later file has; nothing can have been lost in it; records behind it are of "chat"',
    },
  ]);
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
  rmSync(fileIn(dir, "gone/0000000000000000.seg"));
  assert.ok(fileIn(dir, "unborn/meta.json"));
  assert.deepEqual((await verify(dir)).findings, []);
});

describe("a directory with forks", () => {
  let sound = "";
  /** The ids of source and left. */
  let [sourceId, leftId, leafId] = ["", "", ""];
  before(async () => {
    const { dir, ids } = await closedFamily();
    [sourceId, leftId, leafId] = [ids.source, ids.left, ids.leaf];
    sound = dir;
  });

  async function broken(harm: (dir: string) => void): Promise<(readonly [stream: string | null, file: string, problem: string])[]> {
    const dir = copyOf(sound);
    harm(dir);
    const { findings } = await verify(dir);
    return findings.map(({ stream, file, problem }) => [stream, basename(dirname(file)), problem]);
  }

  const meta = (dir: string, name: string): string => fileIn(dir, `${name}/meta.json`);
  const removeStream = (dir: string, name: string): void => rmSync(dirname(meta(dir, name)), { recursive: true });

  test("has nothing to be found, also with a deleted source that nobody needs", async () => {
    assert.deepEqual(await broken(() => undefined), []);
    assert.deepEqual(await broken((dir) => changeSidecar(meta(dir, "leaf"), () => ({ softDeleted: true }))), []);
  });

  test("shows a source that is gone", async () => {
    assert.deepEqual(await broken((dir) => removeStream(dir, "source")), [
      ["left", "left", `its source "source" (${sourceId}) is missing`],
    ]);
  });

  test("shows a source that is another stream of the name, also to that", async () => {
    const found = await broken((dir) => changeSidecar(meta(dir, "source"), () => ({ id: "f".repeat(24) })));
    assert.deepEqual(found, [
      ["left", "left", `its source "source" (${sourceId}) is gone, and another stream (${"f".repeat(24)}) has its name`],
      ["source", "source", `it lists the fork ${leftId}, which is nowhere: its bytes before 4000 are kept for nobody`],
    ]);
  });

  test("shows a source that does not know its fork, or keeps too little for it", async () => {
    const forget = await broken((dir) => changeSidecar(meta(dir, "source"), () => ({ forks: null })));
    assert.deepEqual(forget, [
      ["source", "source", `it does not know its fork "left" (${leftId}), which needs its bytes before 4000: they could be dropped`],
    ]);
    const less = await broken((dir) => changeSidecar(meta(dir, "source"), () => ({ forks: new Map([[leftId, 10]]) })));
    assert.deepEqual(less, [
      ["source", "source", `it keeps its bytes before 10 for its fork "left" (${leftId}), which needs those before 4000`],
    ]);
    const more = await broken((dir) => changeSidecar(meta(dir, "source"), () => ({ forks: new Map([[leftId, 5000]]) })));
    assert.deepEqual(more, [
      ["source", "source", `it keeps its bytes before 5000 for its fork "left" (${leftId}), which needs only those before 4000`],
    ]);
  });

  test("shows a source that lists a fork which is nowhere", async () => {
    assert.deepEqual(await broken((dir) => removeStream(dir, "leaf")), [
      ["left", "left", `it lists the fork ${leafId}, which is nowhere: its bytes before 2000 are kept for nobody`],
    ]);
  });

  test("does not take a fork for gone whose sidecar is damaged or lost", async () => {
    assert.deepEqual(
      (await broken((dir) => flipBit(meta(dir, "leaf"), 70))).map(([stream]) => stream),
      ["leaf"],
    );
    assert.deepEqual(
      (await broken((dir) => rmSync(meta(dir, "leaf")))).map(([stream]) => stream),
      ["leaf"],
    );
    assert.deepEqual(
      (await broken((dir) => writeFileSync(meta(dir, "leaf"), encodeRefusal("why not")))).map(([stream]) => stream),
      ["leaf"],
    );
  });

  test("shows a range that is not there: the source ends before the point, or begins behind what is needed", async () => {
    const short = await broken((dir) =>
      changeSidecar(meta(dir, "source"), ({ state, segments }) => ({
        state: Object.assign(state, { tail: 3000 }),
        segments: segments.slice(0, 1),
      })),
    );
    assert.deepEqual(short, [["left", "left", 'it begins at 4000 of its source "source", which ends at 3000']]);
    const late = await broken((dir) =>
      changeSidecar(meta(dir, "source"), ({ segments }) => ({
        earliest: { position: 3000, segmentStart: 0 },
        segments: segments.slice(1),
      })),
    );
    assert.deepEqual(late, [["left", "left", 'it needs the bytes of its source "source" from 0 on, which begins at 3000']]);
  });

  test("names the forks that share a damaged segment, and no others", async () => {
    const first = await broken((dir) => flipBit(fileIn(dir, "source/0000000000000000.seg"), 7));
    assert.deepEqual(first, [
      [
        "source",
        "source",
        'its first 3000 bytes do not match their checksum: positions 0 to 3000 of the stream, which its forks share: "left", "leaf"',
      ],
    ]);
    const second = await broken((dir) => rmSync(fileIn(dir, "source/0000000000003000.seg")));
    assert.deepEqual(second, [["source", "source", 'it is missing: positions 3000 to 6000 of the stream, which its forks share: "left"']]);
    const own = await broken((dir) => rmSync(fileIn(dir, "left/0000000000004000.seg")));
    assert.deepEqual(own, [["left", "left", "it is missing: positions 4000 to 4004 of the stream"]]);
  });

  test("names the forks of a source whose sidecar is damaged", async () => {
    const found = await broken((dir) => flipBit(meta(dir, "source"), 70));
    assert.deepEqual(found, [
      ["source", "source", "its checksum does not match"],
      ["source", "source", 'its forks can\'t be read without it: "left"'],
    ]);
  });

  test("shows a fork whose own bytes do not begin at its point", async () => {
    const found = await broken((dir) =>
      changeSidecar(meta(dir, "left"), ({ segments }) => ({ segments: segments.map((segment) => ({ ...segment, start: 4001 })) })),
    );
    assert.deepEqual(found[0], ["left", "left", "a segment begins at 4001, what comes before it ends at 4000"]);
  });
});

test("after a crash forks that are only in the journal, with all that became of them, are no finding", async () => {
  const engine = await openEngine();
  const { storage } = engine;
  const source = await created(storage, "source", bytesOf(3000, 1));
  await append(storage, source, bytesOf(3000, 2));
  const weaned = await forked(storage, source, "weaned", 3000, bytesOf(100));
  const left = await forked(storage, source, "left", 4000, bytesOf(5000, 3)); // past the journal
  await forked(storage, left, "leaf", 2000);
  await remove(storage, await forked(storage, source, "gone"));
  trimBefore(storage, weaned, 3000);
  await settled(storage, weaned);
  await storage.persist(left);
  assert.equal(await remove(storage, left), "durable");
  assert.equal(await remove(storage, source), "durable");
  engine.files.gate = ({ kind }) => (kind === "writeThen" ? new Barrier().opened : undefined);
  startCreate(storage, "unborn", bytesOf(6000), { forkedFrom: originAt(weaned, 3050) });
  await engine.files.idle();
  assert.deepEqual((await verify(await crash(engine))).findings, []);
});

test("of a backup that is made again meanwhile, nothing is found but that", async (t) => {
  const engine = await openFor(t);
  await created(engine.storage, "chat", bytesOf(5000, 1));
  const dest = join(tempDir(), "backup");
  await makeBackup(engine.dir, dest);
  await append(engine.storage, await loaded(engine.storage, "chat"), bytesOf(5000, 2));
  const directory = await openOffline(dest, false);
  const found: Finding[] = [];
  let isMade = false;
  // By then the journal has been read, and no stream.
  const files = filesWith(async (call, path) => {
    if (call !== "list" || path !== directory.layout.streams || isMade) return;
    isMade = true;
    await makeBackup(engine.dir, dest, { clock: systemClock() });
    rmSync(fileIn(dest, "meta.json"));
  });
  const options = { ...directory, files, report: (finding: Finding) => void found.push(finding), progress: () => undefined };
  await assert.rejects(verifyDirectory(options), { message: `${dest} was opened meanwhile: run it again` });
  assert.deepEqual([isMade, found], [true, []]);
});
