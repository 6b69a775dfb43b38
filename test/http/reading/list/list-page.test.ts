import assert from "node:assert/strict";
import { TURN_OF_NAMES } from "../../../../src/ops/turns.js";
import { test } from "node:test";
import { ALL_NAMES, rangesOfPattern, type NameRange } from "../../../../src/protocol/names/name-range.js";
import type { Context } from "../../../../src/http/context/context.js";
import { isProblem } from "../../../../src/http/encoding/problems.js";
import { listPage } from "../../../../src/http/reading/list/list-page.js";
import type { Clock } from "../../../../src/ops/clock.js";
import { ListedNames } from "../../../../src/storage/listed-names.js";
import type { StreamList } from "../../../../src/storage/storage.js";
import { startExchanges } from "../../../helpers/exchange-server.js";
import { TurnCount } from "../../../helpers/turn-count.js";

const EVERYBODY = { may: () => true, ranges: () => [ALL_NAMES] };
const NOBODY = { may: () => false, ranges: () => [ALL_NAMES] };
/** Waits for nothing. */
const AT_ONCE: Clock = { nowMs: () => 0, after: (_, run) => (run(), { cancel: () => undefined }) };
const QUERY = { prefix: "", match: null, after: "", limit: 10, live: false };

/** A stream as a list has it; a fork of so many sources. */
const storedOf = (name: string, forkDepth = 0): unknown => ({
  id: "0",
  name,
  observer: null,
  forkDepth,
  config: { contentType: "text/plain", createdAtMs: 0, ttlSeconds: null, expiresAtMs: null, forkedFrom: null },
  state: { tail: 0, closed: false, touchedAtMs: 0, producers: null },
  earliest: 0,
  newestAtMs: null,
  partStartBefore: () => 0,
  writerBefore: () => "w",
});

/** A list of these names, in order; a page needs no more of it. */
function listOf(all: readonly string[], look: (name: string) => unknown = storedOf): StreamList {
  const names = async ({ from, to }: NameRange, count: number) =>
    all.filter((name) => name >= from && (to === null || name < to)).slice(0, count);
  return { names, matching: async () => null, look: async (name: string) => look(name) } as unknown as StreamList;
}

/** A list of more names than one page looks at, of which no stream is there any more. */
class GoneStreams implements Pick<StreamList, "names" | "look"> {
  asked = 0;
  looks = 0;

  async names({ from }: NameRange, count: number): Promise<readonly string[]> {
    const first = from === "" ? 0 : Number(from.slice(0, 8)) + 1;
    this.asked += count;
    return Array.from({ length: count }, (_, at) => String(first + at).padStart(8, "0"));
  }

  async look(): Promise<null> {
    this.looks += 1;
    return null;
  }
}

test("a page that finds nothing among a million names, or ten thousand files, says so", async (context) => {
  const server = await startExchanges(context);
  for (const [lister, looks] of [
    [NOBODY, 0],
    [EVERYBODY, 10_000],
  ] as const) {
    const gone = new GoneStreams();
    // A page needs no more of a list than this.
    const streamList = gone as unknown as StreamList;
    const parts: Context = { ...server.context, streamList };
    const page = await listPage(parts, lister, QUERY, () => 0);
    assert.ok(isProblem(page));
    assert.equal(page.code, "list-too-broad");
    assert.ok(gone.looks >= looks && gone.looks <= looks + 512, String(gone.looks));
    assert.ok(gone.asked <= 1_000_000 + 512, String(gone.asked));
  }
});

test("a page whose names take long to look at lets others have their turns", async (context) => {
  const server = await startExchanges(context);
  const streamList = listOf(
    Array.from({ length: 2000 }, (_, at) => String(at).padStart(4, "0")),
    () => null,
  );
  const count = new TurnCount();
  const slowly = (): boolean => {
    const startedAtMs = performance.now();
    while (performance.now() - startedAtMs < 0.1);
    return false;
  };
  await listPage({ ...server.context, streamList }, { ...EVERYBODY, may: slowly }, QUERY, () => 0);
  count.stop();
  assert.ok(count.turns >= 20, `${count.turns} turns`);
});

test("a page goes on no longer than its client waits for it", async (context) => {
  const server = await startExchanges(context);
  let looks = 0;
  const look = async (): Promise<null> => {
    looks += 1;
    return null;
  };
  const names = async (): Promise<string[]> => Array.from({ length: 512 }, (_, at) => String(at));
  // A page needs no more of a list than this.
  const streamList = { names, look } as unknown as StreamList;
  await listPage(
    { ...server.context, streamList },
    EVERYBODY,
    QUERY,
    () => 0,
    () => looks >= 40,
  );
  assert.ok(looks < 100, `${looks} looks`);
});

test("a page has what its caller may see once, in order, however many patterns there are", async (context) => {
  const server = await startExchanges(context);
  const all = ["a", "a/1", "a/b/1", "ab", "b", "b1", "c", "c/d", "z"];
  const visible = ["a/1", "a/b/1", "b", "b1", "c/d"];
  const streamList = listOf(all);
  const lister = {
    may: (_: unknown, name: string) => visible.includes(name),
    ranges: () => ["b*", "c/d", "a/b/**", "a/1", "b1"].flatMap(rangesOfPattern),
  };
  for (const limit of [1, 2, 1000]) {
    const found: string[] = [];
    for (let after: string | null = ""; after !== null;) {
      const page = await listPage({ ...server.context, streamList, clock: AT_ONCE }, lister, { ...QUERY, limit, after }, () => 0);
      assert.ok(!isProblem(page));
      found.push(...page.streams.map((stream) => String(Reflect.get(stream, "name"))));
      after = page.next;
    }
    assert.deepEqual(found, visible, `pages of ${limit}`);
  }
});

test("a page does not even look at names that begin with nothing of its caller's", async (context) => {
  const server = await startExchanges(context);
  const asked: (readonly [string, string | null])[] = [];
  const names = async ({ from, to }: NameRange): Promise<readonly string[]> => {
    asked.push([from, to]);
    return [];
  };
  // A page needs no more of a list than this.
  const streamList = { names, matching: async () => null, look: async () => null } as unknown as StreamList;
  const lister = { may: () => false, ranges: () => ["mine/**", "yours/*"].flatMap(rangesOfPattern) };
  for (const [prefix, after, expected] of [
    [
      "",
      "",
      [
        ["mine", "mine\0"],
        ["mine/", "mine0"],
        ["yours/", "yours0"],
      ],
    ],
    ["mine/", "", [["mine/", "mine0"]]],
    ["vault/", "", []],
    ["", "vault/0", [["yours/", "yours0"]]],
  ] as const) {
    asked.length = 0;
    const parts = { ...server.context, streamList, clock: AT_ONCE };
    const page = await listPage(parts, lister, { ...QUERY, prefix, after }, () => 0);
    assert.deepEqual(page, { streams: [], next: null });
    assert.deepEqual(asked, expected);
  }
});

test("a page comes at an even time where names that its caller may not see may be looked at, and only there", async (context) => {
  const server = await startExchanges(context);
  // A page needs no more of a list than this.
  const streamList = { names: async () => [], matching: async () => null, look: async () => null } as unknown as StreamList;
  for (const [patterns, prefix, match, waits] of [
    [["a/*"], "", null, true],
    [["a/*/log"], "a/1", null, true],
    [["a/**/log"], "", "a/1/log", true],
    [["a/*"], "b", null, false],
    [["a/**", "b"], "", null, false],
    [["a/**", "a/*"], "", null, false],
    [["**"], "", "a/*/log", false],
  ] as const) {
    const waitedMs: number[] = [];
    // Each look at the stopwatch takes half a millisecond, so that the work takes less than the least.
    let nowMs = 0;
    context.mock.method(process, "hrtime", () => [0, (nowMs += 0.5) * 1e6]);
    const clock: Clock = { ...AT_ONCE, after: (ms, run) => (waitedMs.push(ms), AT_ONCE.after(ms, run)) };
    const lister = { may: () => false, ranges: () => patterns.flatMap(rangesOfPattern) };
    await listPage({ ...server.context, streamList, clock }, lister, { ...QUERY, prefix, match }, () => 0);
    assert.equal(waitedMs.length, waits ? 1 : 0, `${patterns.join(" ")} ${prefix} ${match}`);
    assert.ok(waitedMs.every((ms) => ms > 0));
  }
});

test("a page looks at no name that its caller may not see, where there is an index of those that it may", async (context) => {
  const server = await startExchanges(context);
  const visible = Array.from({ length: 1500 }, (_, at) => `a/${String(at).padStart(4, "0")}/log`);
  const hidden = visible.map((name) => name.replace("log", "secret"));
  const names = new ListedNames([...visible, ...hidden].sort());
  const asked: string[] = [];
  const streamList = {
    names: () => assert.fail("looked at all names"),
    matching: (patterns: readonly (string | null)[]) => names.matching(patterns),
    look: async (name: string) => storedOf(name),
  } as unknown as StreamList; // a page needs no more
  const lister = {
    may: (_: unknown, name: string) => (asked.push(name), name.endsWith("/log")),
    ranges: () => ["a/*/log", "*/0007/log", "a/0008/*"].flatMap(rangesOfPattern),
  };
  const parts: Context = { ...server.context, streamList, clock: AT_ONCE };
  const ofAll = await listPage(parts, lister, { ...QUERY, limit: 1000 }, () => 0);
  assert.ok(!isProblem(ofAll));
  assert.deepEqual(
    ofAll.streams.map((stream) => String(Reflect.get(stream, "name"))),
    visible.slice(0, 1000),
  );
  // Of those, one is of `a/0008/*`.
  assert.deepEqual(
    [...new Set(asked)].filter((name) => name.endsWith("secret")),
    ["a/0008/secret"],
  );
  // Whether there is the one stream that is asked for is not even looked up for who may not see it.
  const ofOne = await listPage(parts, lister, { ...QUERY, match: "a/0009/secret" }, () => 0);
  assert.deepEqual(ofOne, { streams: [], next: null });
});

test("where a page ends, and how often it waits for its turn, says nothing of names that its caller may not see", async (context) => {
  const server = await startExchanges(context);
  const visible = Array.from({ length: 200 }, (_, at) => `a/${String(at).padStart(3, "0")}/log`);
  const lister = { may: (_: unknown, name: string) => name.endsWith("/log"), ranges: () => rangesOfPattern("a/*/log") };
  let waits = 0;
  context.mock.getter(TURN_OF_NAMES, "isSpent", () => true);
  context.mock.method(TURN_OF_NAMES, "next", async () => void (waits += 1));
  const pages: unknown[] = [];
  for (const hidden of [[], ["a/000/a"], Array.from({ length: 55 }, (_, at) => `a/100/${at}`)]) {
    // Of 200 forks a page reads the sources of some only.
    const streamList = listOf([...visible, ...hidden].sort(), (name) => storedOf(name, 330));
    waits = 0;
    const page = await listPage({ ...server.context, streamList, clock: AT_ONCE }, lister, { ...QUERY, limit: 1000 }, () => 0);
    pages.push({ page, waits });
  }
  assert.ok(waits > 0);
  assert.ok(JSON.stringify(pages[0]).includes(`"next":"a/030/log"`), JSON.stringify(pages[0]).slice(-200));
  for (const other of pages.slice(1)) assert.deepEqual(other, pages[0]);
});
