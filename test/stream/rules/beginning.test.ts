import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { StorageBusyError, TrimmedStreamError, type StoredStream } from "../../../src/storage/storage.js";
import { fromBeginning } from "../../../src/stream/rules/beginning.js";

/** A stream that begins 10 bytes later each time that somebody who looked for its beginning comes too late. */
class Trimmed {
  readonly stored = { name: "s", earliest: 0 };
  users = 0;
  /** Where each try began. */
  readonly tries: number[] = [];
  readonly #losses: number;

  constructor(losses: number) {
    this.#losses = losses;
  }

  retain(): void {
    this.users += 1;
  }

  release(): void {
    this.users -= 1;
  }

  async read(earliest: number): Promise<string> {
    this.tries.push(earliest);
    if (this.tries.length > this.#losses) return `from ${earliest}`;
    this.stored.earliest += 10;
    await Promise.resolve();
    assert.equal(this.users, 1);
    throw new TrimmedStreamError(this.stored as StoredStream); // all that the error asks of one
  }
}

describe("work that begins where a stream begins", () => {
  test("is done at once where memory can", () => {
    const stream = new Trimmed(0);
    assert.equal(
      fromBeginning(stream, (earliest) => earliest + 1),
      1,
    );
    assert.equal(stream.users, 0);
  });

  test("is done from where the stream begins by then", async () => {
    for (const losses of [0, 1, 5, 99]) {
      const stream = new Trimmed(losses);
      assert.equal(await fromBeginning(stream, (earliest) => stream.read(earliest)), `from ${losses * 10}`);
      assert.deepEqual([stream.tries.length, stream.users], [losses + 1, 0]);
    }
  });

  test("is left where the stream is dropped faster, and can be tried again", async () => {
    const stream = new Trimmed(100);
    await assert.rejects(async () => fromBeginning(stream, (earliest) => stream.read(earliest)), StorageBusyError);
    assert.deepEqual([stream.tries.length, stream.users], [100, 0]);
  });

  test("fails of anything else as it fails", async () => {
    const stream = new Trimmed(0);
    await assert.rejects(async () => fromBeginning(stream, () => Promise.reject(new Error("EIO"))), /EIO/);
    assert.throws(() => fromBeginning(stream, () => assert.fail("at once")), /at once/);
    assert.equal(stream.users, 0);
  });
});
