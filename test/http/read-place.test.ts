import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Context } from "../../src/http/context.js";
import type { Exchange } from "../../src/http/exchange.js";
import type { Problem } from "../../src/http/problems.js";
import { withReadPlace } from "../../src/http/read-place.js";
import { refuse, type Refused } from "../../src/stream/outcome.js";
import { Stream, type MaybePromise, type Position } from "../../src/stream/stream.js";

/** A read of a stream that is at `place`, and what happened, in order. */
async function readAt(place: () => MaybePromise<Position | Refused>, { isThere = true, touched = undefined as MaybePromise<void> } = {}): Promise<string[]> {
  const log: string[] = [];
  const stream: Stream = Object.create(Stream.prototype, {
    touch: {
      value: () => {
        log.push("touch");
        return touched;
      },
    },
    retain: { value: () => log.push("retain") },
    release: { value: () => log.push("release") },
    locate: { value: place },
  });
  const found = isThere ? stream : refuse("stream-not-found");
  const refuseWith = (_exchange: Exchange, { code }: Problem): void => void log.push(code);
  // All that is asked of a context here.
  const context = { registry: { find: () => found }, responder: { refuse: refuseWith } } as unknown as Context;
  await withReadPlace(context, {} as Exchange, "a", { kind: "start" }, (_stream, position) => void log.push(`at ${position}`)); // only passed on
  return log;
}

describe("a read begins", () => {
  test("at once where memory knows the place", async () => assert.deepEqual(await readAt(() => 7), ["touch", "at 7"]));

  test("later where a file has to be asked, and the stream stays for as long", async () => {
    assert.deepEqual(await readAt(() => Promise.resolve(7)), ["touch", "retain", "at 7", "release"]);
  });

  test("when the note of it is on the disk, and the stream stays for as long", async () => {
    assert.deepEqual(await readAt(() => 7, { touched: Promise.resolve() }), ["touch", "retain", "at 7", "release"]);
  });

  test("nowhere without a place", async () => {
    assert.deepEqual(await readAt(() => refuse("offset-gone")), ["touch", "offset-gone"]);
    assert.deepEqual(await readAt(() => Promise.resolve(refuse("invalid-offset"))), ["touch", "retain", "invalid-offset", "release"]);
  });

  test("nowhere without a stream", async () => assert.deepEqual(await readAt(() => 7, { isThere: false }), ["stream-not-found"]));

  test("never where the files are damaged, and the stream is let go", async () => {
    await assert.rejects(readAt(() => Promise.reject(new Error("damaged"))), /damaged/);
  });
});
