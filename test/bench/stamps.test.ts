import assert from "node:assert/strict";
import { test } from "node:test";
import { stamped, Stamps } from "./stamps.js";

test("the time a message was sent at is found in what arrives", () => {
  assert.equal(stamped(12.34567, 20), "~12.346~xxxxxxxxxxxx");
  assert.deepEqual(
    new Stamps().take(Buffer.from(`event: data\ndata:${stamped(1.5, 100)}\n\nevent: data\ndata:${stamped(2, 100)}\n\n`)),
    [1.5, 2],
  );
});

test("each is found once, wherever it is cut", () => {
  const text = `${stamped(123.456, 30)}\n${stamped(99_999.001, 30)}\n`;
  for (let cut = 0; cut <= text.length; cut += 1) {
    const stamps = new Stamps();
    assert.deepEqual(
      [...stamps.take(Buffer.from(text.slice(0, cut))), ...stamps.take(Buffer.from(text.slice(cut)))],
      [123.456, 99_999.001],
    );
  }
});
