import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { withReadPlace } from "../../src/http/read-place.js";
import { parseOffset, type ParsedOffset } from "../../src/protocol/offset.js";
import type { Stream } from "../../src/stream/stream.js";
import { startExchanges, type ExchangeServer, type StreamParts } from "../helpers/exchange-server.js";
import { created, openEngine } from "../helpers/engine.js";
import { tempDir } from "../helpers/temp-dir.js";

const START: ParsedOffset = { kind: "start" };

function offsetOf(text: string): ParsedOffset {
  return parseOffset(text) ?? assert.fail(`${text} is no offset`);
}

function token(byte: number, segmentStart = 0): string {
  return `${String(segmentStart).padStart(16, "0")}_${String(byte).padStart(16, "0")}`;
}

/** Looks for the place of a read and answers 200 with the position; or gives what was answered instead. */
async function placeOf(server: ExchangeServer, name: string, offset: ParsedOffset): Promise<number | string> {
  const { connection, exchange } = await server.receive("GET", name);
  void withReadPlace(server.context, exchange, name, offset, (_stream, position) => {
    server.context.responder.send(exchange, 200, [], Buffer.from(String(position)));
  });
  const answer = await connection.answer();
  await connection.close();
  return answer.status === 200 ? Number(answer.text) : `${answer.status} ${JSON.parse(answer.text).code}`;
}

const TEXT: StreamParts = { body: "12345" };
// Stored as three lines of three bytes each.
const JSON_STREAM: StreamParts = { contentType: "application/json", body: "[1,2,3]" };

describe("a read begins", () => {
  const PLACES: readonly (readonly [title: string, parts: StreamParts, offset: string, place: number | string])[] = [
    ["at the start", TEXT, "-1", 0],
    ["now, at the tail", TEXT, "now", 5],
    ["at the first byte", TEXT, token(0), 0],
    ["in the middle", TEXT, token(3), 3],
    ["at the tail", TEXT, token(5), 5],
    ["not beyond the tail", TEXT, token(6), "400 invalid-offset"],
    ["not where no segment is", TEXT, token(1, 2), "400 invalid-offset"],
    ["nowhere else in an empty stream than at its start", {}, token(0), 0],
    ["not behind the start of an empty stream", {}, token(1), "400 invalid-offset"],
    ["at a message", JSON_STREAM, token(6), 6],
    ["at the end of the messages", JSON_STREAM, token(9), 9],
    ["not inside a message", JSON_STREAM, token(5), "400 invalid-offset"],
    ["not behind the value of a message", JSON_STREAM, token(4), "400 invalid-offset"],
  ];
  for (const [title, parts, offset, place] of PLACES) {
    test(title, async (t) => {
      const server = await startExchanges(t);
      await server.stream("s", parts);
      assert.equal(await placeOf(server, "s", offsetOf(offset)), place);
    });
  }

  test("not where there is no stream", async (t) => {
    const server = await startExchanges(t);
    assert.equal(await placeOf(server, "s", START), "404 stream-not-found");
  });
});

describe("a read that waits for the disk to know its place", () => {
  /** A server that has to look at the disk for what is inside the stream `s`. */
  async function onDisk(t: Parameters<typeof startExchanges>[0]): Promise<{ readonly server: ExchangeServer; readonly stream: Stream }> {
    const dir = join(tempDir(), "data");
    const before = await openEngine({ dir });
    await created(before.storage, "s", "1,\n2,\n3,\n", { contentType: "application/json" });
    await before.storage.close();
    const server = await startExchanges(t, { dir });
    const stream = await server.context.registry.find("s");
    if ("code" in stream) assert.fail(stream.code);
    assert.ok(stream.locate(offsetOf(token(3))) instanceof Promise, "memory knows the place");
    return { server, stream };
  }

  for (const [offset, place] of [[token(3), 3], [token(4), "400 invalid-offset"]] as const) {
    test(`comes to the same at ${offset}`, async (t) => {
      const { server, stream } = await onDisk(t);
      assert.equal(await placeOf(server, "s", offsetOf(offset)), place);
      assert.equal(stream.idle, true);
    });
  }

  test("keeps the stream in memory until it is done", async (t) => {
    const { server, stream } = await onDisk(t);
    const { exchange } = await server.receive("GET", "s");
    let goOn: () => void = assert.fail;
    let reach: (position: number) => void = () => assert.fail();
    const reached = new Promise<number>((resolve) => (reach = resolve));
    const done = withReadPlace(server.context, exchange, "s", offsetOf(token(3)), (_stream, position) => {
      reach(position);
      return new Promise<void>((resolve) => (goOn = resolve));
    });
    assert.equal(stream.idle, false, "while the disk is asked");
    assert.equal(await reached, 3);
    assert.equal(stream.idle, false, "while the place is used");
    goOn();
    await done;
    assert.equal(stream.idle, true, "afterwards");
  });

  test("lets go of the stream when it fails", async (t) => {
    const { server, stream } = await onDisk(t);
    const { exchange } = await server.receive("GET", "s");
    const done = withReadPlace(server.context, exchange, "s", offsetOf(token(3)), () => Promise.reject(new Error("out of order")));
    await assert.rejects(async () => done, /out of order/);
    assert.equal(stream.idle, true);
  });
});

describe("a read and the lifetime of its stream", () => {
  test("a read restarts a sliding TTL, whatever comes of it", async (t) => {
    const server = await startExchanges(t);
    await server.stream("s", { ...TEXT, ttlSeconds: 10 });
    for (const offset of ["-1", "now", token(6), token(5)]) {
      server.clock.advance(9_000);
      assert.notEqual(await placeOf(server, "s", offsetOf(offset)), "404 stream-not-found", offset);
    }
    server.clock.advance(10_000);
    assert.equal(await placeOf(server, "s", START), "404 stream-not-found");
  });

  test("a read restarts no fixed TTL", async (t) => {
    const server = await startExchanges(t, { settings: { ttl: "fixed" } });
    await server.stream("s", { ...TEXT, ttlSeconds: 10 });
    server.clock.advance(9_000);
    assert.equal(await placeOf(server, "s", START), 0);
    server.clock.advance(1_000);
    assert.equal(await placeOf(server, "s", START), "404 stream-not-found");
  });
});
