import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { checkOf, formatCheckedOffset, START_TOKEN } from "../../../src/protocol/offset.js";
import { appendTo } from "../../helpers/append.js";
import { bytesOf } from "../../helpers/engine.js";
import { tokenIn } from "../../helpers/tokens.js";
import { at, commandOf, JSON_CONFIG, jsonOf, streamIn, streamOf, type TestStream } from "../../helpers/streams.js";
import { trimBefore } from "../../helpers/trim.js";

describe("offsets", () => {
  /** Four segments of 1000, 4000, 3500 and 9000 bytes. */
  async function segmented(t: TestContext): Promise<TestStream & { tokens: string[] }> {
    const made = await streamOf(t);
    const tokens: string[] = [made.stream.offsetAt(0)];
    for (const size of [1000, 4000, 3500, 9000]) {
      const outcome = await appendTo(made.stream, commandOf(bytesOf(size)));
      assert.ok(outcome.kind === "appended");
      tokens.push(outcome.nextOffset);
    }
    return { ...made, tokens };
  }

  test("a position has one token for ever, also where a segment began behind it", async (t) => {
    const { engine, stream, tokens } = await segmented(t);
    const positions = [0, 1000, 5000, 8500, 17_500];
    assert.deepEqual(tokens, [
      START_TOKEN,
      tokenIn(stream.id, 1000),
      tokenIn(stream.id, 4000, 1000),
      tokenIn(stream.id, 3500, 5000),
      tokenIn(stream.id, 9000, 8500),
    ]);
    assert.deepEqual(
      positions.map((position) => stream.offsetAt(position)),
      tokens,
    );
    await engine.storage.persist(stream.stored);
    assert.ok(engine.storage.release(stream.stored));
    const stored = await engine.storage.load("s");
    assert.ok(stored !== null);
    const again = streamIn(engine, stored);
    assert.deepEqual(
      positions.map((position) => again.offsetAt(position)),
      tokens,
    );
    for (const [index, token] of tokens.entries()) assert.equal(again.locate(at(token)), positions[index]);
  });

  test("tokens sort as text in the order of their positions", async (t) => {
    const { stream } = await segmented(t);
    const tokens = Array.from({ length: 176 }, (_, index) => stream.offsetAt(index * 100));
    assert.deepEqual([...tokens].sort(), tokens);
  });

  test("the start, the tail and any byte of a text stream can be read from", async (t) => {
    const { stream } = await segmented(t);
    assert.equal(stream.locate({ kind: "start" }), "start");
    assert.equal((await stream.read("start", 100)).from, 0);
    assert.equal(stream.locate({ kind: "now" }), 17_500);
    assert.equal(stream.locate(at(tokenIn(stream.id, 1, 1000))), 1001);
    assert.equal(stream.locate(at(tokenIn(stream.id, 0, 1000))), 1000);
  });

  test("what was never given out is refused", async (t) => {
    const { stream } = await segmented(t);
    for (const [byte, start] of [
      [9001, 8500],
      [0, 17_500],
      [0, 1],
      [1001, 0],
      [4 * 1024 ** 3, 2 ** 53 - 1],
    ] as const) {
      const token = tokenIn(stream.id, byte, start);
      const located = await stream.locate(at(token));
      assert.ok(typeof located === "object" && located.code === "invalid-offset", token);
    }
  });

  test("one more than a token is the same place: clients exist that add 1 to get behind it", async (t) => {
    const { stream, tokens } = await segmented(t);
    for (const [index, token] of tokens.entries()) {
      const oneMore = token.replace(/\d+$/, (digits) => String(Number(digits) + 1).padStart(16, "0"));
      assert.equal(stream.locate(at(oneMore)), stream.locate(at(token)), `token ${index}`);
    }
  });

  test("a token of another incarnation is gone, wherever it points, and the answer tells where to begin anew", async (t) => {
    const { stream } = await segmented(t);
    for (const token of [tokenIn("another", 1000), tokenIn("another", 0, 1000), tokenIn("another", 3), tokenIn("another", 5, 99_999)]) {
      const located = await stream.locate(at(token));
      assert.ok(typeof located === "object");
      const anew = formatCheckedOffset(0, 0, checkOf(stream.id));
      assert.deepEqual([located.code, located.earliestOffset], ["offset-gone", anew], token);
      assert.match(located.detail ?? "", /^The offset is of another server, /);
      assert.equal(stream.locate(at(anew)), 0);
      assert.ok(anew > START_TOKEN && anew < stream.offsetAt(1), "it sorts as the start does");
    }
    assert.equal(stream.locate(at(START_TOKEN)), 0);
  });

  test("a place before the earliest retained byte is gone, and the answer tells the earliest", async (t) => {
    const { stream, engine } = await segmented(t);
    const before = stream.offsetAt(8500);
    trimBefore(engine.storage, stream.stored, 8500);
    await new Promise<void>((resolve) => engine.storage.barrier(stream.stored, () => resolve()));
    const { earliest } = stream.stored;
    assert.ok(earliest > 0 && earliest <= 8500, `earliest is ${earliest}`);
    assert.deepEqual(await stream.locate(at(tokenIn(stream.id, 1000))), {
      kind: "refused",
      code: "offset-gone",
      earliestOffset: stream.offsetAt(earliest),
    });
    assert.equal((await stream.read("start", 100)).from, earliest);
    assert.equal(stream.locate(at(stream.offsetAt(earliest))), earliest);
    assert.equal(stream.locate(at(before)), 8500);
  });

  test("inside a JSON message reading can't begin, in memory and from a file", async (t) => {
    const { engine, stream } = await streamOf(t, JSON_CONFIG);
    for (const body of ['{"a":1}', "[2,3]"]) await appendTo(stream, jsonOf(body));
    for (const evicted of [false, true]) {
      if (evicted) {
        await engine.storage.persist(stream.stored);
        assert.ok(engine.storage.release(stream.stored));
      }
      const stored = await engine.storage.load("s");
      assert.ok(stored !== null);
      const json = streamIn(engine, stored);
      // {"a":1},\n is 9 bytes, 2,\n and 3,\n are 3 each.
      for (let position = 0; position <= 15; position += 1) {
        const located = await json.locate(at(tokenIn(json.id, position)));
        if ([0, 9, 12, 15].includes(position)) assert.equal(located, position);
        else assert.deepEqual(located, { kind: "refused", code: "invalid-offset", detail: "The offset is inside a message." });
      }
    }
  });
});
