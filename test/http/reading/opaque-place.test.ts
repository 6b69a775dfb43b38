import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OpaquePlaces } from "../../../src/http/reading/opaque-place.js";

describe("an id of a place", () => {
  test("is of one length, stands for its number, and says nothing of it", () => {
    const places = new OpaquePlaces();
    const numbers = [0, 1, 2, 1000, 2 ** 48 - 1];
    const ids = numbers.map((number) => places.idOf(number));
    assert.deepEqual(
      ids.map((id) => places.numberOf(id)),
      numbers,
    );
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) assert.match(id, /^[\w-]{22}$/);
    const again = places.idOf(1);
    assert.notEqual(again, ids[1], "nor of whether anything came between two of one place");
    assert.equal(places.numberOf(again), 1);
  });

  test("means nothing elsewhere, nor when it is changed", () => {
    const [places, others] = [new OpaquePlaces(), new OpaquePlaces()];
    const id = places.idOf(7);
    assert.equal(others.numberOf(id), null);
    const changed = `${id.startsWith("A") ? "B" : "A"}${id.slice(1)}`;
    for (const wrong of [changed, "", "7", `${id}A`, "x".repeat(21), "!".repeat(22)]) assert.equal(places.numberOf(wrong), null, wrong);
  });
});
