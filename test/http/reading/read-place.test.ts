import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { Context } from "../../../src/http/context/context.js";
import type { Exchange } from "../../../src/http/exchange/exchange.js";
import type { Problem } from "../../../src/http/encoding/problems.js";
import { guard } from "../../../src/http/context/guard.js";
import { longPoll } from "../../../src/http/handlers/long-poll.js";
import { read } from "../../../src/http/handlers/read.js";
import { sse } from "../../../src/http/handlers/sse.js";
import { whenThere, withReadPlace } from "../../../src/http/reading/read-place.js";
import { SseFeeds } from "../../../src/http/reading/sse-feed.js";
import { WaitingRooms } from "../../../src/http/reading/long-polls.js";
import type { ParsedOffset } from "../../../src/protocol/offset.js";
import { refuse, type Refused } from "../../../src/stream/rules/outcome.js";
import { Stream, type Chunk, type MaybePromise, type ReadFrom, type StreamPhase } from "../../../src/stream/loaded/stream.js";
import { append, created, loaded, openEngine, settled } from "../../helpers/engine.js";
import { startExchanges } from "../../helpers/exchange-server.js";
import { Barrier, type WatchedFiles } from "../../helpers/watched-files.js";
import { trimBefore } from "../../helpers/trim.js";

/** A read of a stream that is at `place`, and what happened, in order. */
async function readAt(
  place: (offset: ParsedOffset, client: Exchange) => MaybePromise<ReadFrom | Refused>,
  { isThere = true, touched = undefined as MaybePromise<void>, phase = "live" as StreamPhase, exchange = {} as Exchange } = {},
): Promise<string[]> {
  const log: string[] = [];
  const stream: Stream = Object.create(Stream.prototype, {
    phase: { value: phase },
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
  await withReadPlace(context, exchange, "a", { kind: "start" }, (_stream, from) => void log.push(`at ${from}`)); // only passed on
  return log;
}

describe("the place where a read begins", () => {
  test("at once where memory knows the place", async () => assert.deepEqual(await readAt(() => 7), ["touch", "at 7"]));

  test("at the start, wherever that is when it is read", async () => assert.deepEqual(await readAt(() => "start"), ["touch", "at start"]));

  test("later where a file has to be asked, and the stream stays for as long", async () => {
    assert.deepEqual(await readAt(() => Promise.resolve(7)), ["touch", "retain", "at 7", "release"]);
  });

  test("when the note of it is on the disk, and the stream stays for as long", async () => {
    assert.deepEqual(await readAt(() => 7, { touched: Promise.resolve() }), ["touch", "retain", "at 7", "release"]);
  });

  test("is sought for its client, who may leave", async () => {
    const exchange = {} as Exchange;
    assert.deepEqual(await readAt((_offset, client) => (client === exchange ? 7 : 0), { exchange }), ["touch", "at 7"]);
  });

  test("nowhere without a place", async () => {
    assert.deepEqual(await readAt(() => refuse("offset-gone")), ["touch", "offset-gone"]);
    assert.deepEqual(await readAt(() => Promise.resolve(refuse("invalid-offset"))), ["touch", "retain", "invalid-offset", "release"]);
  });

  test("nowhere in a stream that was deleted while its use was noted", async () => {
    for (const [phase, code] of [
      ["gone", "stream-not-found"],
      ["kept", "stream-gone"],
    ] as const)
      assert.deepEqual(await readAt(() => 7, { touched: Promise.resolve(), phase }), ["touch", "retain", code, "release"]);
  });

  test("nowhere without a stream", async () => assert.deepEqual(await readAt(() => 7, { isThere: false }), ["stream-not-found"]));

  test("never where the files are damaged, and the stream is let go", async () => {
    await assert.rejects(
      readAt(() => Promise.reject(new Error("damaged"))),
      /damaged/,
    );
  });
});

describe("a chunk that a read waits for", () => {
  const chunk: Chunk = { kind: "chunk", from: 0, to: 0, bytes: Buffer.alloc(0), upToDate: true, closed: false };

  function streamThatNotes(log: string[]): Stream {
    return { retain: () => log.push("retain"), release: () => log.push("release") } as unknown as Stream; // all that is asked of one
  }

  test("is used at once where it is there", () => {
    const log: string[] = [];
    assert.equal(
      whenThere(streamThatNotes(log), chunk, () => void log.push("used")),
      undefined,
    );
    assert.deepEqual(log, ["used"]);
  });

  test("is waited for, and used before the stream may leave memory", async () => {
    const log: string[] = [];
    await whenThere(streamThatNotes(log), Promise.resolve(chunk), () => void log.push("used"));
    assert.deepEqual(log, ["retain", "used", "release"]);
  });

  test("that can't be read lets the stream go", async () => {
    const log: string[] = [];
    await assert.rejects(async () => whenThere(streamThatNotes(log), Promise.reject(new Error("EIO")), () => void log.push("used")), /EIO/);
    assert.deepEqual(log, ["retain", "release"]);
  });
});

const MODES = ["catch-up", "long-poll", "sse"] as const;
const SEGMENT_BYTES = 4000;
const CONTENT = Array.from({ length: (3 * SEGMENT_BYTES) / 8 }, (_, index) => String(index).padStart(8, "0")).join("");

/** Serves a read of the stream `s` from its beginning. */
function serveRead(context: Context, exchange: Exchange, mode: (typeof MODES)[number]): void {
  const offset: ParsedOffset = { kind: "start" };
  guard(context, exchange, () => {
    if (mode === "catch-up") return read(context, exchange, "s", offset);
    if (mode === "long-poll") return longPoll(context, new WaitingRooms(context), exchange, "s", { offset, cursor: null });
    return sse(context, new SseFeeds(context), exchange, "s", { offset, cursor: null });
  });
}

/** A directory with a stream of three segments, which no memory has. */
async function threeSegments(): Promise<string> {
  const { storage, dir } = await openEngine();
  const stream = await created(storage, "s", "", { contentType: "text/plain" });
  for (let at = 0; at < CONTENT.length; at += SEGMENT_BYTES) await append(storage, stream, CONTENT.slice(at, at + SEGMENT_BYTES));
  await storage.close();
  return dir;
}

describe("a read whose client has gone", () => {
  for (const mode of MODES) {
    test(`is given up while it waits, and counts as no refusal: ${mode}`, async (scope) => {
      const server = await startExchanges(scope);
      const { context } = server;
      await server.stream("s", { contentType: "application/json", body: JSON.stringify("x".repeat(100_000)) });
      const { connection, exchange } = await server.receive("GET", "s");
      const isGone = new Promise<void>((resolve) => exchange.onGone(resolve));
      await connection.close();
      await isGone;
      serveRead(context, exchange, mode);
      await server.engine.files.idle();
      assert.equal(context.inFlight.size, 0);
      assert.deepEqual([exchange.isGone, exchange.status, exchange.code], [true, 0, null]);
    });
  }
});

/** Lets `count` operations on segments pass, and holds the next until the test goes on. */
function holdAfter(files: WatchedFiles, count: number): { readonly held: Promise<"held">; readonly goOn: () => void } {
  const disk = new Barrier();
  let left = count;
  const held = new Promise<"held">((resolve) => {
    files.gate = ({ kind, path }) => {
      if (!path.endsWith(".seg") || !["open", "size", "read"].includes(kind)) return undefined;
      left -= 1;
      if (left !== -1) return undefined;
      resolve("held");
      return disk.opened;
    };
  });
  return { held, goOn: disk.open };
}

/**
 * What a reader from -1 gets when the first segment goes while its read is in the operation after `count` others; `null` where there are
 * fewer.
 */
async function readWhileDropped(scope: TestContext, mode: (typeof MODES)[number], count: number): Promise<string | null> {
  const server = await startExchanges(scope, { dir: await threeSegments() });
  const {
    context,
    engine: { storage, files },
  } = server;
  const { held, goOn } = holdAfter(files, count);
  const { connection, exchange } = await server.receive("GET", "s");
  serveRead(context, exchange, mode);
  const answered = (async () => {
    const { status } = await connection.head();
    return status === 200 ? connection.until(CONTENT.slice(-8)) : `${status}`;
  })();
  if ((await Promise.race([held, answered])) !== "held") return null;
  const stored = await loaded(storage, "s");
  trimBefore(storage, stored, SEGMENT_BYTES);
  await settled(storage, stored);
  await files.idle();
  goOn();
  return answered;
}

describe("a read from -1 begins where the stream begins, whatever is dropped meanwhile", () => {
  for (const mode of MODES) {
    test(mode, async (scope) => {
      const begins = new Set<number>();
      for (let count = 0; ; count += 1) {
        const text = await readWhileDropped(scope, mode, count);
        if (text === null) break;
        const data = text.replace(/^[^]*data:/, "");
        assert.ok(CONTENT.endsWith(data), `after ${count} operations: ${text.slice(0, 200)}`);
        begins.add(CONTENT.length - data.length);
      }
      // Where the read was far enough, it has what was there when it began.
      assert.deepEqual([...begins].sort(), [0, SEGMENT_BYTES]);
    });
  }
});
