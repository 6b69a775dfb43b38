import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";
import { createDurableChatTransport, toDurableStreamResponse } from "@durable-streams/aisdk-transport";
import { AbstractChat, type ChatState, type ChatStatus, type ChatTransport, type UIMessage, type UIMessageChunk } from "ai";
import { Reply } from "./reply.js";
import { Server } from "./server.js";
import { WatchedFetch } from "./watched-fetch.js";

const API = "http://chat.test/api/chat";
const WORDS = Array.from({ length: 40 }, (_, n) => `word${n} `);
const QUESTION: UIMessage = { id: "q", role: "user", parts: [{ type: "text", text: "Tell me." }] };

const server = await Server.start();
const watched = new WatchedFetch();

/** What a model answers in the AI SDK's chunks. */
function newReply(): Reply<UIMessageChunk> {
  const words = WORDS.map((delta): UIMessageChunk => ({ type: "text-delta", id: "t", delta }));
  return new Reply([
    { type: "start", messageId: "a" },
    { type: "text-start", id: "t" },
    ...words,
    { type: "text-end", id: "t" },
    { type: "finish" },
  ]);
}

/** The application's own server, as the package's documentation has it: it writes the reply to a stream of ours. */
class Backend {
  readonly transport: ChatTransport<UIMessage>;
  readonly chatId = randomUUID();
  readonly #reply: Reply<UIMessageChunk>;
  readonly #streamUrl = server.urlOf(`aisdk/${this.chatId}`);

  constructor(reply: Reply<UIMessageChunk>) {
    this.#reply = reply;
    this.transport = createDurableChatTransport({ api: API, fetchClient: (input, init) => this.#answer(new Request(input, init)) });
  }

  /** Asks for the reply; what the page reads of it. */
  async send(): Promise<ReadableStreamDefaultReader<UIMessageChunk>> {
    const stream = await this.transport.sendMessages({
      chatId: this.chatId,
      trigger: "submit-message",
      messageId: undefined,
      messages: [QUESTION],
      abortSignal: undefined,
    });
    return stream.getReader();
  }

  async reconnect(): Promise<ReadableStreamDefaultReader<UIMessageChunk>> {
    const stream = await this.transport.reconnectToStream({ chatId: this.chatId });
    assert.ok(stream !== null, "the reply is under way");
    return stream.getReader();
  }

  async #answer({ method, url }: Request): Promise<Response> {
    if (method === "POST") return toDurableStreamResponse({ source: this.#reply, stream: { writeUrl: this.#streamUrl } });
    assert.equal(url, `${API}/${this.chatId}/stream`);
    const { status } = await fetch(this.#streamUrl, { method: "HEAD" });
    return status === 200 ? Response.json({ streamUrl: this.#streamUrl }) : new Response(null, { status: 204 });
  }
}

/** So many chunks, one after the other as they come; fewer when the reply ends. */
async function take(reader: ReadableStreamDefaultReader<UIMessageChunk>, count: number): Promise<UIMessageChunk[]> {
  const taken: UIMessageChunk[] = [];
  while (taken.length < count) {
    const { done, value } = await reader.read();
    if (done) break;
    taken.push(value);
  }
  return taken;
}

/** A page with the AI SDK's own chat in it. */
class Page extends AbstractChat<UIMessage> {
  readonly #changes: Changes;

  constructor({ chatId, transport }: Backend, messages: UIMessage[] = []) {
    const changes = new Changes(messages);
    super({ id: chatId, transport, state: changes });
    this.#changes = changes;
  }

  /** The text of the answer, when it has come to end with `word`. */
  async answerUpTo(word: string): Promise<string> {
    while (!this.answer.endsWith(word)) await this.#changes.next();
    return this.answer;
  }

  get answer(): string {
    const texts = this.messages
      .filter(({ role }) => role === "assistant")
      .flatMap(({ parts }) => parts.map((part) => (part.type === "text" ? part.text : "")));
    return texts.join("");
  }
}

/** What a user interface keeps for the AI SDK. */
class Changes implements ChatState<UIMessage> {
  status: ChatStatus = "ready";
  error: Error | undefined = undefined;
  messages: UIMessage[];
  #wake = (): void => {};

  constructor(messages: UIMessage[]) {
    this.messages = messages;
  }

  next(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  pushMessage = (message: UIMessage): void => {
    this.messages = [...this.messages, message];
    this.#wake();
  };

  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1);
    this.#wake();
  };

  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.with(index, this.snapshot(message));
    this.#wake();
  };

  snapshot = <T>(value: T): T => structuredClone(value);
}

test("a reply that is read half, left and asked for again comes whole, each chunk once", async () => {
  const reply = newReply();
  const backend = new Backend(reply);
  const first = await backend.send();
  reply.releaseTo(20);
  assert.deepEqual(await take(first, 20), reply.chunks.slice(0, 20));
  await first.cancel();

  const second = await backend.reconnect();
  assert.deepEqual(await take(second, 20), reply.chunks.slice(0, 20));
  reply.releaseTo(reply.chunks.length);
  assert.deepEqual(await take(second, Infinity), reply.chunks.slice(20));
  const third = await backend.reconnect(); // after its end
  assert.deepEqual(await take(third, Infinity), reply.chunks);
});

test("a page that is loaded again in the middle of an answer shows all of it, once", async () => {
  const reply = newReply();
  const backend = new Backend(reply);
  const before = new Page(backend);
  const sent = before.sendMessage({ text: "Tell me." });
  reply.releaseTo(22);
  assert.equal(await before.answerUpTo("word19 "), WORDS.slice(0, 20).join(""));
  await before.stop();
  await sent;

  const after = new Page(backend, [QUESTION]);
  const resumed = after.resumeStream();
  assert.equal(await after.answerUpTo("word19 "), WORDS.slice(0, 20).join(""));
  reply.releaseTo(reply.chunks.length);
  await resumed;
  assert.equal(after.answer, WORDS.join(""));
  assert.deepEqual([after.status, after.error], ["ready", undefined]);
});

test("a reply goes on when the server is killed and started again in its middle: each chunk once for who stays and who comes", async () => {
  const reply = newReply();
  const backend = new Backend(reply);
  const stays = await backend.send();
  reply.releaseTo(20);
  assert.deepEqual(await take(stays, 20), reply.chunks.slice(0, 20));
  await watched.appended();

  await server.killAndRestart();
  reply.releaseTo(30);
  assert.deepEqual(await take(stays, 10), reply.chunks.slice(20, 30));
  const comes = await backend.reconnect();
  assert.deepEqual(await take(comes, 30), reply.chunks.slice(0, 30));
  reply.releaseTo(reply.chunks.length);
  for (const reader of [stays, comes]) assert.deepEqual(await take(reader, Infinity), reply.chunks.slice(30));
});

test("nothing is resumed where there is no reply", async () => {
  const backend = new Backend(newReply());
  assert.equal(await backend.transport.reconnectToStream({ chatId: backend.chatId }), null);
});
