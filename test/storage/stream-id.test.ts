import assert from "node:assert/strict";
import { test } from "node:test";
import { newStreamId } from "../../src/storage/stream-id.js";

test("an id is 24 hexadecimal digits, and a new one each time", () => {
  const ids = Array.from({ length: 1000 }, newStreamId);
  for (const id of ids) assert.match(id, /^[0-9a-f]{24}$/);
  assert.equal(new Set(ids).size, ids.length);
});
