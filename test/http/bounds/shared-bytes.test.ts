import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SharedBytes } from "../../../src/http/bounds/shared-bytes.js";

const memory = new ArrayBuffer(100);

describe("bytes that answers share", () => {
  test("count once, until the last of them is gone", () => {
    const shared = new SharedBytes();
    assert.deepEqual([shared.add(memory, 100), shared.add(memory, 100), shared.add(memory, 50)], [100, 0, 0]);
    assert.deepEqual([shared.remove(memory, 100), shared.remove(memory, 50), shared.remove(memory, 100)], [0, 0, 100]);
    assert.equal(shared.add(memory, 100), 100);
  });

  test("count no more than there are of them", () => {
    const shared = new SharedBytes();
    assert.deepEqual([shared.add(memory, 60), shared.addedBy(memory, 60), shared.add(memory, 60)], [60, 40, 40]);
    assert.deepEqual([shared.remove(memory, 60), shared.remove(memory, 60)], [40, 60]);
  });

  test("are borne by all that have them", () => {
    const shared = new SharedBytes();
    shared.add(memory, 100);
    assert.equal(shared.chargeOf(memory, 100), 100);
    shared.add(memory, 100);
    assert.equal(shared.chargeOf(memory, 100), 50);
    shared.remove(memory, 100);
    assert.equal(shared.chargeOf(memory, 100), 100);
  });

  test("are those of one memory; a copy counts by itself", () => {
    const shared = new SharedBytes();
    shared.add(memory, 100);
    assert.equal(shared.add(new ArrayBuffer(100), 100), 100);
    assert.deepEqual(
      [shared.add(null, 100), shared.add(null, 100), shared.chargeOf(null, 100), shared.remove(null, 100)],
      [100, 100, 100, 100],
    );
  });
});
