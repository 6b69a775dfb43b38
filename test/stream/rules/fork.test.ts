import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { parseOffset } from "../../../src/protocol/offset.js";
import type { CreateCommand, ForkRequest } from "../../../src/stream/rules/command.js";
import { forkConfig, forkOrigin, type ForkSource, type PassMessages } from "../../../src/stream/rules/fork.js";
import { passMessages } from "../../../src/stream/loaded/sought-place.js";
import { Stream, TrimmedStreamError } from "../../../src/stream/loaded/stream.js";
import { streamIn } from "../../helpers/streams.js";
import { tokenIn } from "../../helpers/tokens.js";
import { append, bytesOf, configOf, created, openFor } from "../../helpers/engine.js";

const ZERO = "0000000000000000_0000000000000000";

function requestOf(more: Partial<ForkRequest> = {}): ForkRequest {
  const { offset = null } = more;
  return { source: "source", offset, place: offset === null ? null : parseOffset(offset), subOffset: 0, ...more };
}

interface Source {
  readonly source: Stream;
  readonly pass: PassMessages;
}

/** A stream with these appends, in segments of about 4 KiB. */
async function sourceOf(t: TestContext, contentType: string, appends: readonly (string | Buffer)[]): Promise<Source> {
  const engine = await openFor(t);
  const stored = await created(engine.storage, "source", "", { contentType });
  for (const payload of appends) await append(engine.storage, stored, payload);
  const source = streamIn(engine, stored);
  return { source, pass: (from, count) => passMessages(engine.storage, source, from, count) };
}

/** The fork point, or the code of the refusal. */
async function pointOf({ source, pass }: Source, more: Partial<ForkRequest>): Promise<number | string> {
  const origin = await forkOrigin(source, requestOf(more), null, pass);
  return "kind" in origin ? origin.code : origin.point;
}

describe("the place of a fork", () => {
  test("of bytes is the tail, an offset, or so many bytes behind one, across appends and segments", async (t) => {
    const { source, pass } = await sourceOf(t, "text/plain", ["hello", bytesOf(4000), bytesOf(3000)]);
    const table: [more: Partial<ForkRequest>, point: number | string][] = [
      [{}, 7005],
      [{ offset: ZERO }, 0],
      [{ offset: "-1" }, 0],
      [{ offset: "now" }, 7005],
      [{ offset: tokenIn(source.id, 3) }, 3],
      [{ offset: ZERO, subOffset: 3 }, 3],
      [{ offset: ZERO, subOffset: 7005 }, 7005],
      [{ offset: ZERO, subOffset: 7006 }, "invalid-fork"],
      [{ offset: source.offsetAt(4005), subOffset: 10 }, 4015],
      [{ offset: "now", subOffset: 1 }, "invalid-fork"],
      [{ offset: tokenIn(source.id, 1, 2 ** 53 - 1) }, "invalid-offset"],
      [{ offset: tokenIn("another", 3) }, "invalid-offset"],
    ];
    for (const [more, point] of table) assert.equal(await pointOf({ source, pass }, more), point, JSON.stringify(more));
  });

  test("of JSON counts messages, across appends and segments", async (t) => {
    const large = `"${"x".repeat(3000)}",\n`;
    const { source, pass } = await sourceOf(t, "application/json", ["1,\n2,\n3,\n", large, large, "4,\n"]);
    const table: [subOffset: number, point: number | string][] = [
      [1, 3],
      [2, 6],
      [3, 9],
      [4, 9 + 3004],
      [5, 9 + 6008],
      [6, 12 + 6008],
      [7, "invalid-fork"],
      [2 ** 53 - 1, "invalid-fork"],
    ];
    for (const [subOffset, point] of table)
      assert.equal(await pointOf({ source, pass }, { offset: ZERO, subOffset }), point, `${subOffset}`);
    assert.equal(await pointOf({ source, pass }, { offset: tokenIn(source.id, 1) }), "invalid-offset");
  });

  test("is gone when the source drops it while it is looked for", async (t) => {
    const { source, pass } = await sourceOf(t, "text/plain", [bytesOf(4000), bytesOf(4000)]);
    const partStartBefore: Stream["stored"]["partStartBefore"] = (position) => source.stored.partStartBefore(position);
    const trimmed = Object.create(source.stored, {
      earliest: { value: 4000 },
      partStartBefore: { value: partStartBefore },
    }) as Stream["stored"];
    const origin = await forkOrigin(
      Object.create(source, { isOwnToken: { value: () => true }, stored: { value: trimmed }, locate: { value: () => 100 } }) as Stream,
      requestOf({ offset: tokenIn(source.id, 100) }),
      null,
      pass,
    );
    assert.deepEqual(origin, { kind: "refused", code: "offset-gone", earliestOffset: tokenIn(source.id, 4000) });
  });

  test("behind the start is behind where the source begins by then", async (t) => {
    for (const contentType of ["text/plain", "application/json"]) {
      const message = `"${"x".repeat(3995)}",\n`;
      const { source, pass } = await sourceOf(t, contentType, [message, message, message, message]);
      let reads = 0;
      // What it begins with goes before it is read, and then once more while the place is found.
      const trimmed: ForkSource = {
        stored: Object.create(source.stored, {
          earliest: { get: () => [0, 3999][reads] ?? 3 * 3999 },
          partStartBefore: { value: (position: number) => source.stored.partStartBefore(position) },
        }) as Stream["stored"],
        isJson: contentType === "application/json",
        tail: source.tail,
        retain: () => undefined,
        release: () => undefined,
        isOwnToken: () => true,
        locate: (offset) => source.locate(offset),
      };
      const passTrimmed: PassMessages = async (from, count) => {
        reads += 1;
        if (reads === 1) throw new TrimmedStreamError(source.stored);
        return pass(from, count);
      };
      const origin = await forkOrigin(trimmed, requestOf({ offset: "-1", subOffset: 1 }), null, passTrimmed);
      assert.equal("point" in origin && origin.point, trimmed.isJson ? 4 * 3999 : 1);
    }
  });

  test("is refused where it is too far to be looked for", async (t) => {
    const { source } = await sourceOf(t, "application/json", ["1,\n"]);
    assert.equal(await pointOf({ source, pass: () => Promise.resolve(null) }, { offset: ZERO, subOffset: 65 }), "invalid-fork");
  });

  test("is refused for another content type, and where there are too many forks already", async (t) => {
    const { source, pass } = await sourceOf(t, "text/plain", ["hello"]);
    const gist = async (stream: Stream, contentType: string | null): Promise<string> => {
      const origin = await forkOrigin(stream, requestOf(), contentType, pass);
      return "kind" in origin ? origin.code : "found";
    };
    assert.equal(await gist(source, "Text/Plain; charset=utf-8"), "found");
    assert.equal(await gist(source, "application/json"), "content-type-mismatch");
    for (const [bound, value] of [
      ["forkCount", 100_000],
      ["forkDepth", 1000],
    ] as const) {
      const stored = Object.create(source.stored, { [bound]: { value } }) as Stream["stored"];
      assert.equal(await gist(Object.create(source, { stored: { value: stored } }) as Stream, null), "too-many-forks");
    }
  });
});

const COMMAND: CreateCommand = { contentType: null, ttlSeconds: null, expiresAtMs: null, closed: false, fork: null, body: Buffer.alloc(0) };
const ORIGIN = { name: "source", id: "i", point: 5, earliest: { position: 0, segmentStart: 0 }, offset: ZERO, subOffset: 5 };

describe("the configuration of a fork", () => {
  test("is the source's where the request leaves it open, and begins now", () => {
    const source = configOf({ contentType: "text/plain", ttlSeconds: 60, createdAtMs: 1 });
    assert.deepEqual(
      forkConfig(source, COMMAND, 9, ORIGIN),
      configOf({ contentType: "text/plain", ttlSeconds: 60, createdAtMs: 9, forkedFrom: ORIGIN }),
    );
  });

  test("has the request's lifetime whole where it has one", () => {
    const source = configOf({ ttlSeconds: 60 });
    const { ttlSeconds, expiresAtMs } = forkConfig(source, { ...COMMAND, expiresAtMs: 77 }, 9, ORIGIN);
    assert.deepEqual([ttlSeconds, expiresAtMs], [null, 77]);
  });
});
