import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL_NAMES, rangesOfPattern } from "../../../../src/protocol/names/name-range.js";
import { ListFeed } from "../../../../src/http/reading/list/list-feed.js";
import { startExchanges, type Arrived, type ExchangeServer } from "../../../helpers/exchange-server.js";

const EVERYBODY = { may: () => true, ranges: () => [ALL_NAMES] };
const QUERY = { prefix: "", match: null, after: "", limit: 100, live: true };
const MAX_REMEMBERED = 1024;

/** So many readers who have been told where they begin. */
async function openReaders(
  server: ExchangeServer,
  feed: ListFeed,
  count: number,
  caller: Parameters<ListFeed["open"]>[1],
): Promise<readonly Arrived[]> {
  const readers = await Promise.all(Array.from({ length: count }, () => server.receive("GET", "all")));
  for (const { exchange } of readers) feed.open(exchange, caller, QUERY);
  await Promise.all(readers.map(({ connection }) => connection.until("\n\n")));
  return readers;
}

test("many readers are told some at a time, each of all that happens meanwhile", async (context) => {
  const server = await startExchanges(context);
  const { events } = server.context.streamList;
  const feed = new ListFeed(server.context);
  const readers = await openReaders(server, feed, 200, EVERYBODY);
  const before = readers.map(({ exchange }) => exchange.sentBytes);
  events.emit("deleted", "a");
  const told = readers.filter(({ exchange }, at) => exchange.sentBytes > (before[at] ?? 0)).length;
  assert.ok(told > 0 && told < 100, `${told}`);
  events.emit("deleted", "b");
  await Promise.all(
    readers.map(async ({ connection }) => {
      await connection.until(`{"name":"a"}\n`);
      await connection.until(`{"name":"b"}\n`);
    }),
  );
});

test("a reader who is slower than what is remembered is told to list again, and goes on from there", async (context) => {
  const server = await startExchanges(context);
  const { events } = server.context.streamList;
  const { stored } = await server.stream("a");
  const feed = new ListFeed(server.context);
  const slow = await server.receive("GET", "slow");
  const quick = await server.receive("GET", "quick");
  for (const { exchange } of [slow, quick]) feed.open(exchange, EVERYBODY, QUERY);
  for (const { connection } of [slow, quick]) {
    await connection.head();
    await connection.until("\n\n");
  }
  slow.connection.socket.pause();
  let sent = 0;
  const burst = async (): Promise<void> => {
    for (let at = 1; at < MAX_REMEMBERED / 2; at += 1) events.emit("created", stored);
    sent += MAX_REMEMBERED / 2;
    events.emit("deleted", `after ${sent}`);
    await quick.connection.until(`{"name":"after ${sent}"}\n`);
  };
  while (slow.exchange.req.socket.writableLength === 0) await burst();
  for (let times = 0; times < 8; times += 1) await burst();
  slow.connection.socket.resume();
  const text = await slow.connection.until(`event: control\ndata:{"resumed":false}\n`);
  assert.match(await slow.connection.until("\n\n"), /^id: \S+\n\n$/);
  // More may have been sent than the kernel took at first.
  assert.ok(text.split("event: created").length - 1 < sent);
  events.emit("deleted", "a");
  assert.match(await slow.connection.until("\n\n"), /^event: deleted\ndata:\{"name":"a"\}\nid: \S+\n\n$/);
  // Who comes back within what is remembered misses nothing; who does not is told so.
  for (const [from, resumed] of [
    [sent + 1 - MAX_REMEMBERED, true],
    [sent - MAX_REMEMBERED, false],
    [sent + 2, false],
  ] as const) {
    const back = await server.receive("GET", "back", { headers: { "Last-Event-ID": feed.idOf(from) } });
    feed.open(back.exchange, EVERYBODY, QUERY);
    await back.connection.until(`event: control\ndata:{"resumed":${resumed}}\n`);
    if (resumed) await back.connection.until(`{"name":"a"}\n`);
  }
});

test("where something may have been missed all readers are told to list again, and so is who comes back", async (context) => {
  const server = await startExchanges(context);
  const { events } = server.context.streamList;
  const feed = new ListFeed(server.context);
  const readers = await openReaders(server, feed, 130, EVERYBODY);
  events.emit("deleted", "a");
  const before = feed.idOf(feed.end);
  events.emit("missed");
  await Promise.all(readers.map(({ connection }) => connection.until(`event: control\ndata:{"resumed":false}\n`)));
  events.emit("deleted", "b");
  await Promise.all(readers.map(({ connection }) => connection.until(`{"name":"b"}\n`)));
  for (const [id, resumed] of [
    [before, false],
    [feed.idOf(feed.end), true],
  ] as const) {
    const back = await server.receive("GET", "back", { headers: { "Last-Event-ID": id } });
    feed.open(back.exchange, EVERYBODY, QUERY);
    await back.connection.until(`event: control\ndata:{"resumed":${resumed}}\n`);
  }
});

/** May see what begins with `mine/`, and nothing else. */
const MINE = { may: (_: string, name: string) => name.startsWith("mine/"), ranges: () => rangesOfPattern("mine/**") };

test("who may not see all is told to list again whenever it comes back: else that would tell of what it may not see", async (context) => {
  const server = await startExchanges(context);
  const feed = new ListFeed(server.context);
  const first = await server.receive("GET", "first");
  feed.open(first.exchange, MINE, QUERY);
  await first.connection.until(`{"resumed":false}\n`);
  const back = await server.receive("GET", "back", { headers: { "Last-Event-ID": feed.idOf(0) } });
  feed.open(back.exchange, MINE, QUERY);
  await back.connection.until(`event: control\ndata:{"resumed":false}\n`);
});

test("a slow reader is not told of what it may not see, however much that is, and misses nothing of its own", async (context) => {
  const server = await startExchanges(context);
  const { events } = server.context.streamList;
  const feed = new ListFeed(server.context);
  const slow = await server.receive("GET", "slow");
  const quick = await server.receive("GET", "quick");
  feed.open(slow.exchange, MINE, QUERY);
  feed.open(quick.exchange, EVERYBODY, QUERY);
  await Promise.all([slow.connection.until("\n\n"), quick.connection.until("\n\n")]);
  slow.connection.socket.pause();
  let sent = 0;
  const burst = async (prefix: string): Promise<void> => {
    for (let at = 0; at < MAX_REMEMBERED / 4; at += 1) events.emit("deleted", `${prefix}${(sent += 1)}`);
    await quick.connection.until(`{"name":"${prefix}${sent}"}\n`);
  };
  while (slow.exchange.req.socket.writableLength === 0) await burst("mine/");
  for (let times = 0; times < 6; times += 1) await burst("theirs/");
  await burst("mine/");
  slow.connection.socket.resume();
  const text = await slow.connection.until(`{"name":"mine/${sent}"}\n`);
  assert.doesNotMatch(text, /control|theirs/);
  const told = [...text.matchAll(/"mine\/(\d+)"/g)].map(([, number]) => Number(number));
  const theirs = (MAX_REMEMBERED / 4) * 6;
  assert.equal(told.length, sent - theirs);
  assert.ok(told.every((number, at) => at === 0 || number > (told[at - 1] ?? 0)));
});

test("many readers who may not see all are not told of how much they may not see, however much comes in one turn", async (context) => {
  const server = await startExchanges(context);
  const { events } = server.context.streamList;
  const feed = new ListFeed(server.context);
  const readers = await openReaders(server, feed, 130, MINE);
  for (let at = 0; at < MAX_REMEMBERED * 2; at += 1) events.emit("deleted", `theirs/${at}`);
  events.emit("deleted", "mine/1");
  for (const { connection } of readers) assert.doesNotMatch(await connection.until(`{"name":"mine/1"}\n`), /control/);
});

test("what waits for a slow reader is told by the rights that it has then", async (context) => {
  const server = await startExchanges(context);
  const { events } = server.context.streamList;
  const feed = new ListFeed(server.context);
  const slow = await server.receive("GET", "slow");
  let hidden = "";
  feed.open(slow.exchange, { ...EVERYBODY, may: (_, name) => name !== hidden }, QUERY);
  await slow.connection.until("\n\n");
  slow.connection.socket.pause();
  const filler = "x".repeat(900);
  // Until it is told no more for now.
  for (let at = 0; slow.exchange.req.socket.writableLength < 16 * 1024; at += 1) {
    events.emit("deleted", `${filler}${at}`);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  events.emit("deleted", "secret");
  events.emit("deleted", "last");
  await new Promise<void>((resolve) => setImmediate(resolve));
  hidden = "secret";
  slow.connection.socket.resume();
  assert.doesNotMatch(await slow.connection.until(`{"name":"last"}\n`), /secret/);
});

test("what a reader may see is asked first: a pattern of its own tells by its time of no other name", async (context) => {
  const server = await startExchanges(context);
  const { events } = server.context.streamList;
  const feed = new ListFeed(server.context);
  const reader = await server.receive("GET", "mine");
  feed.open(reader.exchange, { ...EVERYBODY, may: (_, name) => name === "mine/1" }, { ...QUERY, prefix: "m" });
  await reader.connection.until("\n\n");
  const matched: string[] = [];
  const { startsWith } = String.prototype;
  context.mock.method(String.prototype, "startsWith", function (this: string, ...given: [string, number?]) {
    matched.push(String(this));
    return startsWith.apply(this, given);
  });
  events.emit("deleted", "my secret");
  events.emit("deleted", "mine/1");
  await reader.connection.until(`{"name":"mine/1"}\n`);
  assert.ok(matched.includes("mine/1"));
  assert.ok(!matched.includes("my secret"));
});

test("a reader whose right is over as it begins is sent nothing, and the answer ends", async (context) => {
  const server = await startExchanges(context);
  const feed = new ListFeed(server.context);
  const { exchange, connection } = await server.receive("GET", "all");
  context.mock.method(exchange, "onRightEnd", (react: () => void) => react());
  feed.open(exchange, EVERYBODY, QUERY);
  server.context.streamList.events.emit("deleted", "a");
  assert.match(await connection.rest(), /^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n$/);
});
