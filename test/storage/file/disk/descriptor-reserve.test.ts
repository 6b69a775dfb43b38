import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DescriptorReserve } from "../../../../src/storage/file/disk/descriptor-reserve.js";
import { diskError } from "../../../helpers/watched-files.js";

/** A process that may have `limit` descriptors, and takes one for each file. */
class Process {
  readonly #limit: number;
  open = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  readonly take = (): number => {
    if (this.open >= this.#limit) throw diskError("EMFILE");
    return (this.open += 1);
  };

  readonly give = (): void => void (this.open -= 1);

  reserve(): DescriptorReserve {
    return new DescriptorReserve({ open: this.take, close: this.give });
  }
}

describe("a reserve of descriptors", () => {
  test("has sixteen, or an eighth of a low limit, or as many as can be had", () => {
    for (const [limit, free, spares] of [
      [1000, 1000, 16],
      [Infinity, 1000, 16],
      [64, 64, 8],
      [64, 3, 3],
      [7, 7, 0],
    ] as const) {
      const process = new Process(free);
      const reserve = process.reserve();
      reserve.fill(limit, () => undefined);
      assert.equal(process.open, spares);
      reserve.release();
      assert.deepEqual([process.open, reserve.isShort], [0, false]);
    }
  });

  test("opens what nothing else is left for, says so, and is filled up as descriptors come back", () => {
    const process = new Process(20);
    const reserve = process.reserve();
    let calls = 0;
    reserve.fill(32, () => (calls += 1));
    while (process.open < 20) process.take();
    for (let count = 0; count < 4; count += 1) reserve.spend(process.take);
    assert.deepEqual([process.open, calls, reserve.isShort], [20, 4, true]);
    assert.throws(() => reserve.spend(process.take), { code: "EMFILE" });
    process.give();
    reserve.replenish();
    assert.deepEqual([process.open, reserve.isShort], [20, true]);
    reserve.spend(process.take);
    for (let count = 0; count < 6; count += 1) process.give();
    reserve.replenish();
    assert.deepEqual([process.open, reserve.isShort], [18, false]);
  });

  test("gives up another spare where one was taken by somebody faster", () => {
    const process = new Process(10);
    const reserve = process.reserve();
    reserve.fill(80, () => undefined);
    let stolen = 0;
    const opened = reserve.spend(() => {
      if (stolen < 3) {
        stolen += 1;
        process.take();
      }
      return process.take();
    });
    assert.deepEqual([opened, stolen], [10, 3]);
  });

  test("gives up none for what fails for another reason", () => {
    const process = new Process(10);
    const reserve = process.reserve();
    reserve.fill(80, () => undefined);
    const tries: string[] = [];
    const open = (): number => {
      tries.push("open");
      throw diskError("ENOENT");
    };
    assert.throws(() => reserve.spend(open), { code: "ENOENT" });
    assert.deepEqual([tries.length, process.open, reserve.isShort], [1, 10, false]);
  });
});
