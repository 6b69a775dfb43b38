import assert from "node:assert/strict";
import { test } from "node:test";
import { checkOf, formatOffset, parseOffset, START_TOKEN, type TokenPlace } from "../../../src/protocol/offset.js";
import { isTokenOf, offsetIn } from "../../../src/stream/rules/offset-tokens.js";
import { append, bytesOf, created, forked, openEngine } from "../../helpers/engine.js";
import { tokenIn } from "../../helpers/tokens.js";

function placed(token: string): TokenPlace {
  const parsed = parseOffset(token);
  assert.ok(parsed?.kind === "at");
  return parsed;
}

test("a fork of a fork has the tokens of whoever wrote the byte before a position", async (t) => {
  const { storage } = await openEngine();
  t.after(() => storage.close());
  const source = await created(storage, "source", bytesOf(100));
  const middle = await forked(storage, source, "middle", 60, bytesOf(50));
  const last = await forked(storage, middle, "last", 90, bytesOf(10));
  await append(storage, source, bytesOf(5));
  const table: [position: number, token: string][] = [
    [0, START_TOKEN],
    [1, tokenIn(source.id, 1)],
    [60, tokenIn(source.id, 60)],
    [61, tokenIn(middle.id, 1, 60)],
    [90, tokenIn(middle.id, 30, 60)],
    [91, tokenIn(last.id, 1, 90)],
    [100, tokenIn(last.id, 10, 90)],
  ];
  for (const [position, token] of table) {
    assert.equal(offsetIn(last, position), token, `position ${position}`);
    assert.ok(isTokenOf(last, placed(token)), `position ${position}`);
  }
  for (const [token, stream] of [
    [tokenIn(source.id, 61), last],
    [tokenIn(source.id, 61), middle],
    [tokenIn(middle.id, 1, 60), source],
    [tokenIn(last.id, 1, 90), middle],
  ] as const) {
    assert.equal(isTokenOf(stream, placed(token)), false, `${token} of ${stream.name}`);
  }
});

test("one more than a check is that check, and so is one more than the start", async (t) => {
  const { storage } = await openEngine();
  t.after(() => storage.close());
  const stream = await created(storage, "s", bytesOf(100));
  assert.ok(isTokenOf(stream, { partStart: 0, byteInPart: 7, check: checkOf(stream.id) + 1 }));
  assert.equal(isTokenOf(stream, { partStart: 0, byteInPart: 7, check: checkOf(stream.id) + 2 }), false);
  assert.ok(isTokenOf(stream, placed("0000000000000000_0000000000000001")));
  assert.equal(offsetIn(stream, 7, 123), formatOffset(0, 7, 123));
});
