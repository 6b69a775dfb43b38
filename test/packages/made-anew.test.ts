import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";
import { DurableStream, FetchError, stream, type LiveMode, type StreamResponse } from "@durable-streams/client";
import { createStateSchema, createStreamDB } from "@durable-streams/state/db";
import { durableStreamConnection } from "@durable-streams/tanstack-ai-transport";
import { Server } from "./server.js";

const LIVE_MODES: readonly LiveMode[] = [true, "long-poll", "sse"];
const server = await Server.start();
const platformFetch = globalThis.fetch;

/** A stream whose name is another stream's before the client's second request, while the client knows nothing of it. */
class MadeAnew {
  readonly url = server.urlOf(`made-anew/${randomUUID()}`);
  /** What the client was answered. */
  readonly statuses: number[] = [];
  readonly #contentType: string;
  readonly #after: readonly string[];

  private constructor(contentType: string, after: readonly string[]) {
    this.#contentType = contentType;
    this.#after = after;
  }

  /** `before` and `after` are appends, the new ones reach beyond the old: by number each old offset is in the new stream too. */
  static async create(contentType: string, before: readonly string[], after: readonly string[]): Promise<MadeAnew> {
    const made = new MadeAnew(contentType, after);
    await made.#make(before);
    return made;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    if (this.statuses.length === 1) {
      await DurableStream.delete({ url: this.url, fetch: platformFetch });
      await this.#make(this.#after);
    }
    const response = await platformFetch(input, init);
    this.statuses.push(response.status);
    return response;
  };

  async #make(appends: readonly string[]): Promise<void> {
    const handle = await DurableStream.create({ url: this.url, contentType: this.#contentType, fetch: platformFetch });
    for (const append of appends) await handle.append(append);
  }
}

/** Whether a client was told that its offset is of another stream, and where this one begins. */
function isGone(fault: unknown): boolean {
  assert.ok(fault instanceof FetchError, String(fault));
  assert.equal(fault.status, 410);
  // The first byte of the new one, by a token that no former one had.
  assert.match(String(fault.headers["stream-earliest-offset"]), /^0{16}_0{10}\d{6}$/);
  assert.match(fault.text ?? "", /"code":"offset-gone"/);
  return true;
}

/** What a session reads until it is told so; ends it at once where it takes anything but what `old` has. */
async function textUntilGone(
  response: StreamResponse,
  old: RegExp,
  onChunk = async (_arrived: string, _soFar: string): Promise<void> => {},
): Promise<string> {
  let text = "";
  response.subscribeText(async (chunk) => {
    text += chunk.text;
    if (!old.test(text)) return response.cancel();
    await onChunk(chunk.text, text);
  });
  await assert.rejects(response.closed, isGone);
  return text;
}

for (const live of LIVE_MODES) {
  test(`a reader that is caught up is told that its stream is another now, live: ${live}`, async () => {
    const made = await MadeAnew.create("text/plain", ["one;", "two;"], ["ABCDEFGH", "IJKLMNOP"]);
    const response = await stream({ url: made.url, live, fetch: made.fetch });
    assert.equal(await textUntilGone(response, /^(one;|two;)*$/), "one;two;");
    assert.deepEqual(made.statuses, [200, 410]);
  });

  test(`a reader between two answers of its backlog is told that its stream is another now, live: ${live}`, async () => {
    const old = Array.from({ length: 4 }, () => "a".repeat(600_000));
    const made = await MadeAnew.create(
      "text/plain",
      old,
      old.map(() => "b".repeat(700_000)),
    );
    const response = await stream({ url: made.url, live, fetch: made.fetch });
    assert.notEqual(await textUntilGone(response, /^a*$/), "");
    assert.deepEqual(made.statuses, [200, 410]);
  });

  test(`a database takes nothing of the stream that has its stream's name, live: ${live}`, async (context) => {
    context.mock.method(console, "error", () => {});
    const state = createStateSchema({
      users: {
        schema: { "~standard": { version: 1, vendor: "streamdir", validate: (value) => ({ value }) } },
        type: "user",
        primaryKey: "id",
      },
    });
    const change = (id: string, name: string) => JSON.stringify(state.users.insert({ value: { id, name } }));
    const made = await MadeAnew.create(
      "application/json",
      [change("1", "Ada")],
      [change("2", "Bob, whose name is longer"), change("3", "Cleo")],
    );
    const db = createStreamDB({ streamOptions: { url: made.url, contentType: "application/json", fetch: made.fetch }, state, live });
    context.after(() => db.close());
    await db.preload();
    db.collections.users.subscribeChanges(() => db.close());
    await assert.rejects(db.utils.awaitTxId("never written", 60_000), isGone);
    assert.deepEqual([...db.collections.users.keys()], ["1"]);
  });
}

test("a reader by SSE whose stream is deleted and made anew is told so when it connects again", async () => {
  const url = server.urlOf(`made-anew/${randomUUID()}`);
  const handle = await DurableStream.create({ url, contentType: "text/plain", body: "one;" });
  const statuses: number[] = [];
  const told: typeof fetch = async (input, init) => {
    if (statuses.length === 2) await DurableStream.create({ url, contentType: "text/plain", body: "ABCDEFGHIJKLMNOP" });
    const response = await platformFetch(input, init);
    statuses.push(response.status);
    return response;
  };
  const response = await stream({ url, live: "sse", fetch: told });
  const text = await textUntilGone(response, /^(one;|two;)*$/, async (arrived, soFar) => {
    if (soFar === "one;" && arrived === "") await handle.append("two;"); // the connection stands
    if (soFar === "one;two;") await handle.delete();
  });
  assert.equal(text, "one;two;");
  assert.deepEqual(statuses, [200, 200, 410]);
});

test("a chat takes nothing of the stream that has its stream's name", async (context) => {
  const chunk = (delta: string) => JSON.stringify({ type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta });
  const made = await MadeAnew.create("application/json", [chunk("old")], [chunk("new and longer"), chunk("newer")]);
  context.mock.method(globalThis, "fetch", made.fetch);
  const connection = durableStreamConnection({ sendUrl: made.url, readUrl: made.url, initialOffset: "-1" });
  const seen: unknown[] = [];
  const reading = (async () => {
    for await (const { delta } of connection.subscribe()) {
      seen.push(delta);
      if (delta !== "old") break;
    }
  })();
  await assert.rejects(reading, isGone);
  assert.deepEqual(seen, ["old"]);
});
