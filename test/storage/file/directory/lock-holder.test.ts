import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  decodeHolder,
  encodeHolder,
  standingOf,
  type LockHolder,
  type Standing,
} from "../../../../src/storage/file/directory/lock-holder.js";
import type { ProcessIdentity } from "../../../../src/ops/lock/process-identity.js";
import type { Reach } from "../../../../src/storage/file/disk/sockets.js";

const SELF: ProcessIdentity = { pid: 100, host: "here", startedAt: "boot 5", boot: "boot", pidNamespace: "pid:[1]" };
const HOLDER: LockHolder = {
  pid: 7,
  host: "here",
  startedAt: "boot 1",
  boot: "boot",
  pidNamespace: "pid:[1]",
  socket: "lock.0123456789abcdef.sock",
};

interface Case {
  readonly holder?: Partial<LockHolder>;
  readonly self?: Partial<ProcessIdentity>;
  readonly reach?: Reach;
  /** When process 7 of this namespace started; absent where there is none. */
  readonly startedAt?: string | null;
}

describe("whether a holder still runs", () => {
  for (const [what, { holder = {}, self = {}, reach = "missing", startedAt }, standing] of [
    ["its socket answers", { reach: "answers" }, "alive"],
    [
      "its socket answers, whatever else is said",
      { reach: "answers", holder: { boot: "old", host: "there", pidNamespace: "pid:[2]" } },
      "alive",
    ],
    ["its socket refuses", { reach: "refuses" }, "gone"],
    [
      "its socket refuses, and it was in another container of another name",
      { reach: "refuses", holder: { host: "there", pidNamespace: "pid:[2]" } },
      "gone",
    ],
    ["its socket refuses in a copy of its directory", { reach: "refuses", startedAt: "boot 1" }, "gone"],
    ["this user may not connect", { reach: "unknown", startedAt: "boot 1" }, "behind-permissions"],
    ["this user may not connect, and it can't be told when it started", { reach: "unknown", startedAt: null }, "behind-permissions"],
    ["this user may not connect, and there is no such process", { reach: "unknown" }, "gone"],
    ["this user may not connect, and another process has its id", { reach: "unknown", startedAt: "boot 9" }, "gone"],
    [
      "this user may not connect, and it is in another container",
      { reach: "unknown", holder: { pidNamespace: "pid:[2]" } },
      "behind-permissions",
    ],
    [
      "this user may not connect, and its pid namespace is not told",
      { reach: "unknown", holder: { pidNamespace: null } },
      "behind-permissions",
    ],
    ["the machine was started again since", { holder: { boot: "old" } }, "gone"],
    ["the machine was started again since, and another process has the id", { holder: { boot: "old" }, startedAt: "boot 1" }, "gone"],
    ["it may be on another machine", { holder: { boot: "other", host: "there" } }, "on-another-machine"],
    [
      "it may be on another machine, whose socket refuses here",
      { holder: { boot: "other", host: "there" }, reach: "refuses" },
      "on-another-machine",
    ],
    [
      "it has no socket, and is in another container",
      { holder: { socket: null, pidNamespace: "pid:[2]" }, startedAt: "boot 1" },
      "in-another-namespace",
    ],
    ["its socket is not here, and it is in another container", { holder: { pidNamespace: "pid:[2]" } }, "in-another-namespace"],
    ["it has no socket, and runs", { holder: { socket: null }, startedAt: "boot 1" }, "alive"],
    ["it has no socket, and runs as far as can be told", { holder: { socket: null }, startedAt: null }, "alive"],
    [
      "it has no socket and could not tell its start, and runs",
      { holder: { socket: null, startedAt: null }, startedAt: "boot 9" },
      "alive",
    ],
    ["it has no socket, and is gone", { holder: { socket: null } }, "gone"],
    ["it has no socket, and another process has its id", { holder: { socket: null }, startedAt: "boot 9" }, "gone"],
    [
      "the boot is not told, and it runs",
      { holder: { boot: null, pidNamespace: null }, self: { boot: null, pidNamespace: null }, startedAt: "boot 1" },
      "alive",
    ],
    ["its pid namespace is not told, and it runs", { holder: { pidNamespace: null }, startedAt: "boot 1" }, "alive"],
    ["the boot is not told, and its socket refuses", { holder: { boot: null }, self: { boot: null }, reach: "refuses" }, "gone"],
    ["the boot is not told, on another host", { holder: { boot: null, host: "there" } }, "on-another-machine"],
  ] satisfies readonly (readonly [string, Case, Standing])[]) {
    test(`${what}: ${standing}`, async () => {
      const startedAtOf = async (pid: number): Promise<string | null | undefined> => (pid === 7 ? startedAt : undefined);
      assert.equal(await standingOf({ ...HOLDER, ...holder }, { reach, self: { ...SELF, ...self }, startedAtOf }), standing);
    });
  }
});

describe("a holder's file", () => {
  test("names the holder as it is", () => {
    for (const holder of [HOLDER, { ...HOLDER, startedAt: null, boot: null, pidNamespace: null, socket: null }]) {
      assert.deepEqual(decodeHolder(encodeHolder(holder)), holder);
    }
  });

  test("names nobody when it is cut short, or something else", () => {
    for (const text of ["", '{"pid":7,"ho', "[1]", "null", '"x"', '{"pid":"7","host":"here"}', '{"pid":7}']) {
      assert.equal(decodeHolder(Buffer.from(text)), null, text);
    }
  });

  test("may say less, and names no socket but one of a lock", () => {
    const bare = { pid: 7, host: "here", startedAt: null, boot: null, pidNamespace: null, socket: null };
    assert.deepEqual(decodeHolder(Buffer.from('{"pid":7,"host":"here"}')), bare);
    for (const socket of ["../other.sock", "lock", "lock.0123456789abcdef", 5]) {
      assert.deepEqual(decodeHolder(Buffer.from(JSON.stringify({ pid: 7, host: "here", socket }))), bare);
    }
  });
});
