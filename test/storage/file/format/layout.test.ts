import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { test } from "node:test";
import {
  claimIdOf,
  claimPath,
  claimSocket,
  escapeName,
  isKeptDraft,
  isLockSocket,
  isPutAside,
  journalSequenceOf,
  keptSequenceOf,
  Layout,
  segmentPath,
  sidecarPath,
  sparePath,
} from "../../../../src/storage/file/format/layout.js";

const layout = new Layout("/data");

test("everything has its place below the root", () => {
  assert.deepEqual(
    { ...layout },
    {
      root: "/data",
      lock: "/data/lock",
      marker: "/data/streamdir.json",
      names: "/data/names",
      backup: "/data/backup.json",
      journal: "/data/journal",
      streams: "/data/streams",
      trash: "/data/trash",
      damaged: "/data/damaged",
    },
  );
  assert.equal(layout.journalFile(42), "/data/journal/0000000000000042.journal");
  assert.equal(segmentPath("/s", 4096), "/s/0000000000004096.seg");
  assert.equal(sidecarPath("/s"), "/s/meta.json");
});

test("what lies beside the lock is known by its name", () => {
  const id = "0123456789abcdef";
  assert.equal(claimPath(layout.lock, id), `/data/lock.${id}`);
  assert.equal(claimSocket(layout.lock, id), `lock.${id}.sock`);
  for (const end of ["", ".sock", ".new", ".sock.new"]) assert.equal(claimIdOf(`lock.${id}${end}`), id);
  for (const name of ["lock", `lock.${id}0`, `lock.${id}.old`, `xlock.${id}`, "lock.0123456789ABCDEF", ""])
    assert.equal(claimIdOf(name), null);
  assert.equal(isLockSocket(`lock.${id}.sock`), true);
  for (const name of [`lock.${id}`, `lock.${id}.sock.new`, "x.sock", `../lock.${id}.sock`]) assert.equal(isLockSocket(name), false);
});

test("a journal file's name gives its sequence, any other name none", () => {
  assert.equal(journalSequenceOf(basename(layout.journalFile(7))), 7);
  for (const name of ["7.journal", "0000000000000007.journal.new", "x0000000000000007.journal", "000000000000000a.journal", ""])
    assert.equal(journalSequenceOf(name), null);
});

test("a spare file is known by its name, and recovery does not read it", () => {
  const spare = basename(sparePath(layout.journalFile(7)));
  assert.equal(isPutAside(spare), true);
  assert.equal(journalSequenceOf(spare), null);
  assert.equal(isPutAside(basename(layout.journalFile(7))), false);
});

test("what is kept of a journal file has its sequence, in place and before, and is taken for no journal file", () => {
  const kept = basename(layout.keptJournalFile(7));
  assert.deepEqual([keptSequenceOf(kept), isKeptDraft(kept), journalSequenceOf(kept)], [7, false, null]);
  assert.deepEqual([keptSequenceOf(`${kept}.new`), isKeptDraft(`${kept}.new`), journalSequenceOf(`${kept}.new`)], [null, true, null]);
  assert.equal(keptSequenceOf(basename(layout.journalFile(7))), null);
});

test("names are escaped so that any file system takes them", () => {
  const table: [name: string, escaped: string][] = [
    ["chat-1_a", "chat-1_a"],
    ["Chat", "%43hat"],
    ["a/b", "a%2Fb"],
    ["..", "%2E%2E"],
    [".hidden", "%2Ehidden"],
    ["v1.2", "v1.2"],
    ["end.", "end%2E"],
    ["ä", "%C3%A4"],
    ["a b%~", "a%20b%25%7E"],
    ["con", "con"],
    ["", ""],
  ];
  for (const [name, escaped] of table) assert.equal(escapeName(name), escaped);
});

test("different names have different directories, also on file systems that ignore case", () => {
  const names = [
    "a",
    "A",
    "a.",
    ".a",
    "a/b",
    "a%2Fb",
    "a%2fb",
    "x".repeat(200),
    "x".repeat(201),
    "X".repeat(100),
    `${"x".repeat(300)}1`,
    `${"x".repeat(300)}2`,
    "é",
    "e\u0301",
  ];
  const directories = new Set(names.map((name) => layout.streamDirectory(name).toLowerCase()));
  assert.equal(directories.size, names.length);
});

test("a long name is cut and ends with its hash, and fits into a file name", () => {
  const name = "X".repeat(1024);
  const directory = basename(layout.streamDirectory(name));
  assert.ok(directory.length <= 255);
  assert.ok(directory.endsWith(`~${createHash("sha256").update(name).digest("hex")}`));
  assert.ok(basename(layout.streamDirectory("x".repeat(200))).length === 200);
});

test("a stream is in one of 256 shards", () => {
  const directory = layout.streamDirectory("s");
  assert.match(directory, /^\/data\/streams\/[0-9a-f]{2}\/s$/);
  assert.equal(layout.shard(directory), join(directory, ".."));
});
