import assert from "node:assert/strict";
import { test } from "node:test";
import { servePage } from "../../helpers/page-examples.js";

const PROGRAM = new URL("../../../docs/recipes/mcp-event-store.mjs", import.meta.url).href;

/** What the MCP SDK asks of an event store. */
interface EventStore {
  storeEvent(streamId: string, message: object): Promise<string>;
  getStreamIdForEventId(eventId: string): Promise<string | undefined>;
  replayEventsAfter(lastEventId: string, options: { send(eventId: string, message: object): Promise<void> }): Promise<string>;
}

type EventStoreClass = new (session: string, options?: { ttlSeconds?: number }) => EventStore;

const { StreamdirEventStore } = (await import(PROGRAM)) as { StreamdirEventStore: EventStoreClass }; // the program has no types

interface Replayed {
  readonly ids: string[];
  readonly messages: object[];
}

async function replay(store: EventStore, lastEventId: string): Promise<Replayed> {
  const replayed: Replayed = { ids: [], messages: [] };
  await store.replayEventsAfter(lastEventId, {
    async send(eventId, message) {
      replayed.ids.push(eventId);
      replayed.messages.push(message);
    },
  });
  return replayed;
}

function call(id: number): object {
  return { jsonrpc: "2.0", id, method: "tools/call" };
}

test("what was stored behind an event is replayed, in order, from each id that was given out", async (context) => {
  // A few messages in each answer, so that a replay needs several.
  const store = new StreamdirEventStore(`${await servePage(context, { chunkBytes: 100 })}mcp/session-1/`);
  const priming = await store.storeEvent("stream/1", {});
  const stored: string[] = [];
  for (let id = 1; id <= 9; id++) stored.push(await store.storeEvent("stream/1", call(id)));
  await store.storeEvent("_GET_stream", call(100));

  const all = await replay(store, priming);
  assert.deepEqual(all.messages, [1, 2, 3, 4, 5, 6, 7, 8, 9].map(call));
  for (const [index, id] of [...stored, ...all.ids].entries()) {
    assert.deepEqual((await replay(store, id)).messages, all.messages.slice((index % 9) + 1), id);
    assert.equal(await store.getStreamIdForEventId(id), "stream/1");
  }
});

test("an empty message, which stands for a beginning, is not replayed, and counts", async (context) => {
  const store = new StreamdirEventStore(`${await servePage(context)}mcp/session-1/`);
  const first = await store.storeEvent("a", call(1));
  await store.storeEvent("a", {});
  await store.storeEvent("a", call(2));
  const { ids, messages } = await replay(store, first);
  assert.deepEqual(messages, [call(2)]);
  assert.deepEqual((await replay(store, ids[0] ?? "")).messages, []);
});

test("an id of elsewhere is none, and a session has its own streams", async (context) => {
  const streams = await servePage(context);
  const [one, other] = [new StreamdirEventStore(`${streams}mcp/1/`), new StreamdirEventStore(`${streams}mcp/2/`)];
  assert.equal(await one.getStreamIdForEventId("event-7"), undefined);
  await assert.rejects(replay(one, "event-7"), /not of this store/);
  const id = await one.storeEvent("_GET_stream", call(1));
  await other.storeEvent("_GET_stream", call(2));
  await assert.rejects(replay(other, id), /offset-gone/);
});

test("a session that is over is removed", async (context) => {
  const streams = await servePage(context);
  await new StreamdirEventStore(`${streams}mcp/1/`, { ttlSeconds: 60 }).storeEvent("a", call(1));
  assert.equal((await fetch(`${streams}mcp/1/a`, { method: "HEAD" })).headers.get("Stream-TTL"), "60");
});
