import assert from "node:assert/strict";
import { test } from "node:test";
import { Slots } from "../../../src/storage/file/slots.js";

test("as much runs at once as there are slots, the rest in the order of the calls", async () => {
  const slots = new Slots(2);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const done = [0, 1, 2, 3].map((index) =>
    slots.run(async () => {
      begun.push(index);
      await new Promise<void>((resolve) => (ends[index] = resolve));
      return index;
    }),
  );
  assert.deepEqual(begun, [0, 1]);
  ends[1]?.();
  assert.equal(await done[1], 1);
  assert.deepEqual(begun, [0, 1, 2]);
  ends[0]?.();
  assert.equal(await done[0], 0);
  assert.deepEqual(begun, [0, 1, 2, 3]);
  ends[2]?.();
  ends[3]?.();
  assert.deepEqual(await Promise.all(done), [0, 1, 2, 3]);
});

test("work that fails gives its slot to the next", async () => {
  const slots = new Slots(1);
  const failed = slots.run(() => Promise.reject(new Error("EIO")));
  const next = slots.run(() => Promise.resolve("done"));
  await assert.rejects(failed, /EIO/);
  assert.equal(await next, "done");
});
