import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test, { type TestContext } from "node:test";
import { DurableStream, stream, type LiveMode } from "@durable-streams/client";
import { MaterializedState, type ChangeEvent } from "@durable-streams/state";
import { createStateSchema, createStreamDB } from "@durable-streams/state/db";
import { Server } from "./server.js";

const LIVE_MODES: readonly LiveMode[] = [true, "long-poll", "sse"];
const ARRIVES_WITHIN_MS = 60_000;

interface User {
  id: string;
  name: string;
}

interface Message {
  id: string;
  text: string;
}

const state = createStateSchema({
  users: { schema: schemaOf<User>(), type: "user", primaryKey: "id" },
  messages: { schema: schemaOf<Message>(), type: "message", primaryKey: "id" },
});
const server = await Server.start();

/** What takes every value; the types are all that these tests need. */
function schemaOf<T>() {
  // The tests write no other values.
  return { "~standard": { version: 1 as const, vendor: "streamdir", validate: (value: unknown) => ({ value: value as T }) } };
}

function create(): Promise<DurableStream> {
  return DurableStream.create({ url: server.urlOf(`state/${randomUUID()}`), contentType: "application/json" });
}

/** The package's database on a stream, until the test is over. */
function open(context: TestContext, { url }: DurableStream, live: LiveMode) {
  const db = createStreamDB({
    streamOptions: { url, contentType: "application/json" },
    state,
    live,
    actions: ({ db: { collections, utils }, stream: handle }) => ({
      greet: {
        onMutate: (message: Message) => void collections.messages.insert(message),
        mutationFn: async (message: Message) => {
          const txid = await write(handle, state.messages.insert({ value: message }));
          await utils.awaitTxId(txid, ARRIVES_WITHIN_MS);
        },
      },
    }),
  });
  context.after(() => db.close());
  return db;
}

/** Appends one change; the id that a database knows it by when it arrives. */
async function write(handle: DurableStream, change: ChangeEvent): Promise<string> {
  const txid = randomUUID();
  await handle.append(JSON.stringify({ ...change, headers: { ...change.headers, txid } }));
  return txid;
}

/** The rows as they were written, by their keys. */
function rowsOf(collection: { readonly toArray: readonly object[] }): object[] {
  const rows = collection.toArray.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => /^[a-z]/.test(name))));
  return rows.sort((a, b) => (String(a["id"]) < String(b["id"]) ? -1 : 1));
}

for (const live of LIVE_MODES) {
  test(`a database loads what is there and follows what comes, live: ${live}`, async (context) => {
    const handle = await create();
    await write(handle, state.users.insert({ value: { id: "1", name: "Ada" } }));
    await write(handle, state.users.insert({ value: { id: "2", name: "Bob" } }));
    await write(handle, state.users.update({ value: { id: "1", name: "Ada L." } }));
    await write(handle, state.users.delete({ key: "2" }));

    const db = open(context, handle, live);
    await db.preload();
    assert.deepEqual(rowsOf(db.collections.users), [{ id: "1", name: "Ada L." }]);

    const seen: string[] = [];
    db.collections.users.subscribeChanges((changes) => void seen.push(...changes.map(({ type, key }) => `${type} ${key}`)), {
      includeInitialState: true,
    });
    for (const change of [
      state.users.insert({ value: { id: "3", name: "Cleo" } }),
      state.users.update({ value: { id: "3", name: "Cleopatra" } }),
      state.users.upsert({ value: { id: "4", name: "Dora" } }),
      state.users.upsert({ value: { id: "4", name: "Dora M." } }),
      state.users.delete({ key: "1" }),
    ]) {
      await db.utils.awaitTxId(await write(handle, change), ARRIVES_WITHIN_MS);
    }
    assert.deepEqual(seen, ["insert 1", "insert 3", "update 3", "insert 4", "update 4", "delete 1"]);
    assert.deepEqual(rowsOf(db.collections.users), [
      { id: "3", name: "Cleopatra" },
      { id: "4", name: "Dora M." },
    ]);

    await db.actions.greet({ id: "m1", text: "hello" }).isPersisted.promise;
    assert.deepEqual(rowsOf(db.collections.messages), [{ id: "m1", text: "hello" }]);
  });

  test(`two databases on one stream stay the same, live: ${live}`, async (context) => {
    const handle = await create();
    const [one, other] = [open(context, handle, live), open(context, handle, live)];
    await Promise.all([one.preload(), other.preload()]); // of a stream with nothing in it
    const numbers = Array.from({ length: 200 }, (_, n) => String(n).padStart(3, "0"));
    const txids = await Promise.all(numbers.map((id) => write(handle, state.users.insert({ value: { id, name: `user ${id}` } }))));
    for (const db of [one, other]) {
      await Promise.all(txids.map((txid) => db.utils.awaitTxId(txid, ARRIVES_WITHIN_MS)));
      assert.deepEqual(
        rowsOf(db.collections.users),
        numbers.map((id) => ({ id, name: `user ${id}` })),
      );
    }
  });

  test(`a state that takes many answers is loaded whole, live: ${live}`, async (context) => {
    const handle = await create();
    const users = Array.from({ length: 60 }, (_, n) => ({ id: String(n).padStart(2, "0"), name: "x".repeat(50_000) }));
    await Promise.all(users.map((value) => write(handle, state.users.insert({ value }))));
    const db = open(context, handle, live);
    await db.preload();
    assert.deepEqual(rowsOf(db.collections.users), users);
  });

  test(`what was written since an offset is read from it, and a database that is opened again has all, live: ${live}`, async (context) => {
    const handle = await create();
    const first = open(context, handle, live);
    await first.preload();
    await first.utils.awaitTxId(await write(handle, state.users.insert({ value: { id: "1", name: "Ada" } })), ARRIVES_WITHIN_MS);
    const { offset } = first;
    first.close();

    const later = [state.users.upsert({ value: { id: "1", name: "Ada L." } }), state.users.insert({ value: { id: "2", name: "Bob" } })];
    for (const change of later) await write(handle, change);
    const rest = await stream<ChangeEvent>({ url: handle.url, offset, live });
    const materialized = new MaterializedState();
    materialized.applyBatch(await rest.json());
    assert.deepEqual(
      [...materialized.getType("user")],
      [
        ["1", { id: "1", name: "Ada L." }],
        ["2", { id: "2", name: "Bob" }],
      ],
    );

    const again = open(context, handle, live);
    await again.preload();
    assert.deepEqual(rowsOf(again.collections.users), [
      { id: "1", name: "Ada L." },
      { id: "2", name: "Bob" },
    ]);
    assert.equal(again.offset, rest.offset);
  });

  test(`a database outlives the server that is killed and started again, live: ${live}`, async (context) => {
    const handle = await create();
    const db = open(context, handle, live);
    await db.preload();
    await db.utils.awaitTxId(await write(handle, state.users.insert({ value: { id: "1", name: "Ada" } })), ARRIVES_WITHIN_MS);
    await server.killAndRestart();
    await db.utils.awaitTxId(await write(handle, state.users.update({ value: { id: "1", name: "Ada L." } })), ARRIVES_WITHIN_MS);
    assert.deepEqual(rowsOf(db.collections.users), [{ id: "1", name: "Ada L." }]);
  });
}
