import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test, { type TestContext } from "node:test";
import {
  durableStreamConnection,
  ensureDurableChatSessionStream,
  materializeSnapshotFromDurableStream,
  toDurableChatSessionResponse,
  toDurableStreamResponse,
  type DurableStreamConnection,
  type TanStackChunk,
} from "@durable-streams/tanstack-ai-transport";
import { ChatClient, type UIMessage } from "@tanstack/ai-client";
import { Changes } from "./changes.js";
import { Reply } from "./reply.js";
import { Server } from "./server.js";
import { WatchedFetch } from "./watched-fetch.js";

const API = "http://chat.test/api/chat";
const WORDS = Array.from({ length: 40 }, (_, n) => `word${n} `);
const QUESTION = { id: "q", role: "user" as const, parts: [{ type: "text" as const, content: "Tell me." }] };

const server = await Server.start();
const watched = new WatchedFetch();

/** What a model answers in TanStack AI's chunks; the first one and the last two are no words. */
function newReply(): Reply<TanStackChunk> {
  const words = WORDS.map((delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta }));
  const run = { threadId: "t", runId: "r" };
  return new Reply([
    { type: "RUN_STARTED", ...run },
    { type: "TEXT_MESSAGE_START", messageId: "a", role: "assistant" },
    ...words,
    { type: "TEXT_MESSAGE_END", messageId: "a" },
    { type: "RUN_FINISHED", ...run, finishReason: "stop" },
  ]);
}

/** The application's own server, as the package's documentation has it: one stream of ours for each chat. */
class Backend {
  readonly streamUrl = server.urlOf(`tanstack/${randomUUID()}`);
  readonly #reply: Reply<TanStackChunk>;

  private constructor(reply: Reply<TanStackChunk>) {
    this.#reply = reply;
  }

  static async start(reply: Reply<TanStackChunk>): Promise<Backend> {
    const backend = new Backend(reply);
    await ensureDurableChatSessionStream({ writeUrl: backend.streamUrl });
    return backend;
  }

  connect(initialOffset?: string): DurableStreamConnection {
    const fetchClient: typeof fetch = (input, init) => this.#answer(new Request(input, init));
    return durableStreamConnection({
      sendUrl: API,
      readUrl: this.streamUrl,
      fetchClient,
      ...(initialOffset === undefined ? {} : { initialOffset }),
    });
  }

  async #answer(request: Request): Promise<Response> {
    const { messages } = (await request.json()) as { messages: UIMessage[] }; // as the package sends it
    const question = messages.at(-1);
    assert.equal(question?.role, "user");
    return toDurableChatSessionResponse({
      stream: { writeUrl: this.streamUrl },
      newMessages: [{ ...QUESTION, id: question.id }],
      responseStream: this.#reply,
    });
  }
}

/** One subscription, read chunk by chunk, until it is left or the test is over. */
class Subscription {
  readonly #chunks: AsyncIterator<TanStackChunk>;
  readonly #leave = new AbortController();

  constructor(context: TestContext, connection: DurableStreamConnection) {
    this.#chunks = connection.subscribe(this.#leave.signal)[Symbol.asyncIterator]();
    context.after(() => this.leave());
  }

  async next(): Promise<TanStackChunk> {
    const { done, value } = await this.#chunks.next();
    assert.ok(done !== true, "the subscription goes on");
    return value;
  }

  async take(count: number): Promise<TanStackChunk[]> {
    const taken: TanStackChunk[] = [];
    while (taken.length < count) taken.push(await this.next());
    return taken;
  }

  /** Resolves when the connection is gone. */
  async leave(): Promise<void> {
    this.#leave.abort();
    await this.#chunks.return?.();
  }
}

/** Lets the reply go on to `end` chunk by chunk, each of which is an append, and takes what arrives. */
async function follow(reply: Reply<TanStackChunk>, from: number, end: number, subscription: Subscription): Promise<TanStackChunk[]> {
  const taken: TanStackChunk[] = [];
  for (let next = from + 1; next <= end; next++) {
    reply.releaseTo(next);
    taken.push(await subscription.next());
  }
  return taken;
}

test("a subscription that is left in the middle of a reply goes on where it was, each chunk once", async (context) => {
  const reply = newReply();
  const backend = await Backend.start(reply);
  const connection = backend.connect();
  const first = new Subscription(context, connection);
  assert.deepEqual(await first.next(), { type: "MESSAGES_SNAPSHOT", messages: [] });
  await connection.send([QUESTION]);
  const echo = await first.take(3);
  assert.deepEqual(
    echo.map(({ type, messageId }) => [type, messageId]),
    [
      ["TEXT_MESSAGE_START", "q"],
      ["TEXT_MESSAGE_CONTENT", "q"],
      ["TEXT_MESSAGE_END", "q"],
    ],
  );
  const half = await follow(reply, 0, 20, first);
  await first.leave();
  reply.releaseTo(30); // nobody reads

  const second = new Subscription(context, connection);
  const missed = await second.take(10);
  const rest = await follow(reply, 30, reply.chunks.length, second);
  assert.deepEqual([...half, ...missed, ...rest], reply.chunks);
});

test("a page that is loaded again begins with a snapshot and its offset, and gets the rest once", async (context) => {
  const reply = newReply();
  const backend = await Backend.start(reply);
  const before = backend.connect();
  const left = new Subscription(context, before);
  await left.next();
  await before.send([QUESTION]);
  await left.take(3);
  await follow(reply, 0, 22, left);
  await left.leave();

  const { messages, offset } = await materializeSnapshotFromDurableStream({ readUrl: backend.streamUrl });
  assert.deepEqual(
    messages.map(({ id, parts }) => [id, parts]),
    [
      ["q", QUESTION.parts],
      ["a", [{ type: "text", content: WORDS.slice(0, 20).join("") }]],
    ],
  );
  const after = new Subscription(context, backend.connect(offset));
  assert.deepEqual(await follow(reply, 22, reply.chunks.length, after), reply.chunks.slice(22));
});

test("a reply goes on when the server is killed and started again in its middle: each chunk once for who stays and who comes", async (context) => {
  const reply = newReply();
  const backend = await Backend.start(reply);
  const connection = backend.connect();
  const stays = new Subscription(context, connection);
  await stays.next();
  await connection.send([QUESTION]);
  await stays.take(3);
  assert.deepEqual(await follow(reply, 0, 20, stays), reply.chunks.slice(0, 20));
  await watched.appended();
  const { offset } = await materializeSnapshotFromDurableStream({ readUrl: backend.streamUrl });

  await server.killAndRestart();
  reply.releaseTo(30);
  assert.deepEqual(await stays.take(10), reply.chunks.slice(20, 30));
  const comes = new Subscription(context, backend.connect(offset));
  assert.deepEqual(await comes.take(10), reply.chunks.slice(20, 30));
  reply.releaseTo(reply.chunks.length);
  for (const subscription of [stays, comes]) assert.deepEqual(await subscription.take(reply.chunks.length - 30), reply.chunks.slice(30));
});

test("TanStack's own chat shows an answer once on two pages, one of which was loaded in its middle", async (context) => {
  const reply = newReply();
  const backend = await Backend.start(reply);
  const first = new Page(context, { connection: backend.connect() });
  await first.isConnected();
  const sent = first.client.sendMessage("Tell me.");
  reply.releaseTo(22);
  assert.equal(await first.answerUpTo("word19 "), WORDS.slice(0, 20).join(""));

  const { messages, offset } = await materializeSnapshotFromDurableStream({ readUrl: backend.streamUrl });
  const second = new Page(context, { connection: backend.connect(offset), initialMessages: messages });
  assert.equal(second.answer, WORDS.slice(0, 20).join(""));
  reply.releaseTo(reply.chunks.length);
  await sent;
  for (const page of [first, second]) {
    assert.equal(await page.answerUpTo("word39 "), WORDS.join(""));
    assert.deepEqual(
      page.client.getMessages().map(({ role }) => role),
      ["user", "assistant"],
    );
  }
});

test("a reply on a stream of its own ends with it", async () => {
  const reply = newReply();
  const url = server.urlOf(`tanstack/${randomUUID()}`);
  reply.releaseTo(reply.chunks.length);
  const response = await toDurableStreamResponse(reply, { stream: { writeUrl: url }, mode: "await" });
  const { finalOffset } = (await response.json()) as { finalOffset: string }; // as the package documents it
  const head = await fetch(url, { method: "HEAD" });
  assert.deepEqual([head.headers.get("stream-next-offset"), head.headers.get("stream-closed")], [finalOffset, "true"]);
  // Not by a connection: the package's ends before it has read what a closed stream holds.
  const { messages, offset } = await materializeSnapshotFromDurableStream({ readUrl: url });
  assert.deepEqual(messages, [{ id: "a", role: "assistant", parts: [{ type: "text", content: WORDS.join("") }] }]);
  assert.equal(offset, finalOffset);
});

/** A page with TanStack's own chat in it. */
class Page {
  readonly client: ChatClient;
  readonly #changes = new Changes();

  constructor(context: TestContext, options: { readonly connection: DurableStreamConnection; readonly initialMessages?: UIMessage[] }) {
    const onChange = () => this.#changes.happened();
    this.client = new ChatClient({ ...options, onMessagesChange: onChange, onConnectionStatusChange: onChange });
    this.client.subscribe();
    context.after(() => this.client.unsubscribe());
  }

  get answer(): string {
    const answers = this.client.getMessages().filter(({ role }) => role === "assistant");
    return answers.flatMap(({ parts }) => parts.map((part) => (part.type === "text" ? part.content : ""))).join("");
  }

  isConnected(): Promise<void> {
    return this.#changes.until(() => this.client.getConnectionStatus() === "connected");
  }

  /** The text of the answer, when it has come to end with `word`. */
  async answerUpTo(word: string): Promise<string> {
    await this.#changes.until(() => this.answer.endsWith(word));
    return this.answer;
  }
}
