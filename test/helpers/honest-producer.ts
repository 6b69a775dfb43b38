import assert from "node:assert/strict";
import type { RealServer } from "./real-server.js";

/** A message as its producer wrote it, and as a JSON stream gives it back. */
export function messageOf(producer: string, seq: number, length: number): string {
  return JSON.stringify({ p: producer, seq, padding: "x".repeat(length) });
}

/** A client that appends with a producer's id and numbers, and sends each append again until it is acknowledged. */
export class HonestProducer {
  readonly id: string;
  readonly stream: string;
  /** Of what was acknowledged, in order. The messages themselves would be an hour's garbage to walk through. */
  readonly #lengths: number[] = [];
  readonly #server: RealServer;

  constructor(server: RealServer, stream: string, id: string) {
    this.#server = server;
    this.stream = stream;
    this.id = id;
  }

  /** How many were acknowledged. */
  get count(): number {
    return this.#lengths.length;
  }

  /** What was acknowledged, in order. */
  get sent(): string[] {
    return this.#lengths.map((length, seq) => messageOf(this.id, seq, length));
  }

  /** Appends one message of about `length` bytes and does not rest until it is acknowledged. */
  async append(length: number, closes = false): Promise<void> {
    const message = messageOf(this.id, this.count, length);
    for (;;) {
      const { status, body } = await this.#server.insist("POST", this.stream, {
        headers: this.#headers(this.count, closes),
        body: message,
      });
      if (status === 200 || status === 204) break;
      // The disk failed under it: whether the append is there is what the retry finds out.
      assert.ok(status === 503, `${status} ${body}`);
    }
    this.#lengths.push(length);
  }

  /** Sends the last message once more; gives the answer's status. */
  async repeatLast(closes = false): Promise<number> {
    const { status } = await this.#server.insist("POST", this.stream, {
      headers: this.#headers(this.count - 1, closes),
      body: this.count === 0 ? "" : messageOf(this.id, this.count - 1, this.#lengths.at(-1) ?? 0),
    });
    return status;
  }

  #headers(seq: number, closes: boolean): Record<string, string> {
    const headers = { "Content-Type": "application/json", "Producer-Id": this.id, "Producer-Epoch": "0", "Producer-Seq": String(seq) };
    return closes ? { ...headers, "Stream-Closed": "true" } : headers;
  }
}

/** The messages of a JSON stream, read to its end. */
export async function messagesOf(server: RealServer, stream: string): Promise<string[]> {
  const messages: string[] = [];
  for (let offset = "-1"; ;) {
    const { status, body, headers } = await server.insist("GET", `${stream}?offset=${offset}`);
    assert.equal(status, 200, body);
    messages.push(...parseMessages(body));
    offset = String(headers["stream-next-offset"]);
    if (headers["stream-up-to-date"] === "true") return messages;
  }
}

/** The messages in the body of a read. */
export function parseMessages(body: string): string[] {
  return (JSON.parse(body) as unknown[]).map((message) => JSON.stringify(message)); // a JSON stream reads as an array
}

/** Fails unless the streams hold each producer's messages in its order, once each, and nothing else. */
export async function assertExactlyOnce(server: RealServer, producers: readonly HonestProducer[]): Promise<void> {
  for (const stream of new Set(producers.map((producer) => producer.stream))) {
    const stored = await messagesOf(server, stream);
    const writers = producers.filter((producer) => producer.stream === stream);
    for (const { id, sent } of writers) {
      const own = stored.filter((message) => message.startsWith(`{"p":"${id}"`));
      assert.ok(
        own.length === sent.length && own.every((message, index) => message === sent[index]),
        `${id} in ${stream}: ${own.length} stored, ${sent.length} acknowledged`,
      );
    }
    assert.equal(
      stored.length,
      writers.reduce((sum, { sent }) => sum + sent.length, 0),
      `nobody else wrote to ${stream}`,
    );
  }
}
