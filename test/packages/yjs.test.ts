import assert from "node:assert/strict";
import test from "node:test";
import { Server } from "./server.js";
import { WatchedFetch, type Exchange } from "./watched-fetch.js";
import { Room, same } from "./yjs-room.js";

const MIB = 1024 * 1024;
/** Above --chunk-bytes, 1 MiB by default. */
const MORE_THAN_A_CHUNK = 1.5 * MIB;

const server = await Server.start();
const watched = new WatchedFetch();

/** Whether our server, not the package's, answered such a request with success. */
function isAnswerTo(method: string, part: string): (exchange: Exchange) => boolean {
  return (exchange) =>
    exchange.url.origin === server.origin && exchange.method === method && exchange.status < 300 && exchange.url.pathname.includes(part);
}

function answersTo(method: string, part: string): Exchange[] {
  return watched.exchanges.filter(isAnswerTo(method, part));
}

test("two documents stay one through two compactions, and so does who joins after each", async (context) => {
  const room = await Room.open(context, "novel", server, watched);
  const ada = await room.join("sse");
  const bob = await room.join("long-poll");

  ada.text.insert(0, "Once upon a time. ");
  await same(ada, bob);
  bob.text.insert(bob.text.length, "The end.");
  bob.fields.set("author", "Bob");
  ada.fields.set("title", "Novel");
  await Promise.all([ada.write(0.8 * MIB), bob.write(0.8 * MIB)]);
  await room.compacted(1);
  await same(ada, bob);

  const cleo = await room.join("sse");
  assert.equal(answersTo("GET", "/.snapshots/").length, 1, "who joins late begins with the snapshot");
  await same(ada, cleo);

  cleo.text.delete(0, "Once upon a time. ".length);
  cleo.fields.set("editor", "Cleo");
  await same(ada, bob, cleo);
  await Promise.all([ada, bob, cleo].map((peer) => peer.write(0.5 * MIB)));
  await room.compacted(2);
  await watched.answered(isAnswerTo("DELETE", "/.snapshots/"));
  await same(ada, bob, cleo);

  const reads = answersTo("GET", "/.snapshots/").length;
  const dora = await room.join("long-poll");
  await room.serve(); // this one knows of the snapshot only by the index in its stream
  const emil = await room.join("sse");
  assert.equal(answersTo("GET", "/.snapshots/").length, reads + 2, "who joins late begins with the newer snapshot");
  await same(ada, bob, cleo, dora, emil);
  emil.fields.set("reader", "Emil");
  await same(ada, bob, cleo, dora, emil);

  assert.ok(
    room.snapshotBytes.every((bytes) => bytes > MIB),
    `snapshots above --chunk-bytes: ${room.snapshotBytes.join(", ")} bytes`,
  );
  assert.deepEqual(room.faults, []);
});

for (const liveMode of ["sse", "long-poll"] as const) {
  test(`a backlog above --chunk-bytes is read in whole updates, and then what comes, by ${liveMode}`, async (context) => {
    const room = await Room.open(context, `backlog/${liveMode}`, server, watched, 64 * MIB); // without a snapshot
    const writer = await room.join(liveMode);
    await writer.write(1.2 * MIB);
    await writer.write(MORE_THAN_A_CHUNK, MORE_THAN_A_CHUNK);
    await writer.write(1.2 * MIB);

    const late = await room.join(liveMode);
    await same(writer, late);
    const reads = answersTo("GET", `${room.docId}/.updates`).filter(({ url }) => !url.searchParams.has("live"));
    assert.ok(reads.length >= 4, `${reads.length} answers held the backlog`);
    writer.text.insert(0, "begins");
    await same(writer, late);
    late.text.insert(late.text.length, "ends");
    await same(writer, late);
    assert.deepEqual(room.faults, []);
  });
}

for (const liveMode of ["sse", "long-poll"] as const) {
  test(`an update above --chunk-bytes reaches who follows, whole, by ${liveMode}`, async (context) => {
    const room = await Room.open(context, `large/${liveMode}`, server, watched, 64 * MIB);
    const ada = await room.join("sse");
    const bob = await room.join(liveMode);
    ada.text.insert(0, "Once ");
    await same(ada, bob); // they follow
    await ada.write(MORE_THAN_A_CHUNK, MORE_THAN_A_CHUNK);
    await same(ada, bob);
    bob.text.insert(0, "again ");
    await same(ada, bob);
    assert.deepEqual(room.faults, []);
  });
}

test("an update that comes before an SSE connection stands is in its first events, whole", async (context) => {
  const room = await Room.open(context, "between", server, watched, 64 * MIB);
  const ada = await room.join("long-poll");
  const isConnecting = (url: URL) =>
    url.origin === server.origin && url.pathname.includes("/between/.updates") && url.searchParams.get("live") === "sse";
  watched.beforeNext(isConnecting, () => ada.write(MORE_THAN_A_CHUNK, MORE_THAN_A_CHUNK));
  const bob = await room.join("sse");
  await same(ada, bob);
  ada.text.insert(0, "again ");
  await same(ada, bob);
  assert.deepEqual(room.faults, []);
});

test("who is there shows to the others, until he leaves", async (context) => {
  const room = await Room.open(context, "presence", server, watched);
  const ada = await room.join("sse");
  const bob = await room.join("long-poll");
  await watched.answered(
    ({ url }) => url.origin === room.url && url.searchParams.has("awareness") && url.searchParams.get("live") === "sse",
    2,
  );

  const adaIsSeen = bob.seenOf(ada);
  ada.awareness.setLocalState({ name: "Ada", cursor: 7 });
  assert.deepEqual(await adaIsSeen, { name: "Ada", cursor: 7 });
  const bobIsSeen = ada.seenOf(bob);
  bob.awareness.setLocalState({ name: "Bob" });
  assert.deepEqual(await bobIsSeen, { name: "Bob" });
  const adaIsGone = bob.seenOf(ada);
  await ada.leave();
  assert.equal(await adaIsGone, undefined);
  assert.deepEqual(room.faults, []);
});

test("documents stay one when the server is killed and started again between edits", async (context) => {
  const room = await Room.open(context, "killed", server, watched);
  // Between edits: the package does not send again what it could not send.
  const ada = await room.join("sse");
  const bob = await room.join("long-poll");
  await ada.write(100_000);
  await same(ada, bob);
  bob.text.insert(0, "before ");
  await same(ada, bob);

  await server.killAndRestart();
  ada.text.insert(0, "after ");
  bob.text.insert(bob.text.length, " and after");
  await same(ada, bob);
  const late = await room.join("sse");
  await same(ada, bob, late);
  assert.equal(late.text.toString().replace(/x+/, "x"), "after before x and after");
});
