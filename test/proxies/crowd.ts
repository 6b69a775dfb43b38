import { Agent } from "node:http";
import type { TestScope } from "../helpers/process.js";
import { ask } from "../helpers/real-server.js";

/** One reader that follows a stream with long-polls, as the official clients do: with each answer's offset and cursor. */
export interface CrowdReader {
  text: string;
  /** How many answers said that there is nothing new. */
  timeouts: number;
}

/** Lets readers go on together, once each of them has had its answer. */
class Step {
  #expected: number;
  #arrived: (() => void)[] = [];

  constructor(expected: number) {
    this.#expected = expected;
  }

  arrive(): Promise<void> {
    const goOn = new Promise<void>((resolve) => this.#arrived.push(resolve));
    this.#look();
    return goOn;
  }

  leave(): void {
    this.#expected -= 1;
    this.#look();
  }

  #look(): void {
    if (this.#arrived.length < this.#expected) return;
    for (const goOn of this.#arrived.splice(0)) goOn();
  }
}

/** Readers of one stream, each with a connection of its own. */
export class Crowd {
  readonly readers: CrowdReader[] = [];
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  readonly #done: Promise<void>[] = [];
  #looks = new Set<() => void>();

  /** `url` is the stream's. */
  constructor(scope: TestScope, url: string) {
    this.#url = url;
    scope.after(async () => this.#agent.destroy());
  }

  /** `count` more readers, from an offset on. Those in step ask again when all of them have been told of nothing new. */
  join(count: number, offset: string, { inStep = false } = {}): void {
    const step = inStep ? new Step(count) : null;
    for (let at = 0; at < count; at += 1) {
      const reader: CrowdReader = { text: "", timeouts: 0 };
      this.readers.push(reader);
      const done = this.#follow(reader, offset, step).finally(() => step?.leave());
      // Whoever waits for all of them meets it.
      done.catch(() => undefined);
      this.#done.push(done);
    }
  }

  async #follow(reader: CrowdReader, start: string, step: Step | null): Promise<void> {
    let offset = start;
    let cursor = "";
    for (;;) {
      const { status, body, headers } = await ask(`${this.#url}?${cursor}live=long-poll&offset=${offset}`, "GET", { agent: this.#agent });
      if (status !== 200 && status !== 204) throw new Error(`${status}: ${body}`);
      reader.text += body;
      if (status === 204) reader.timeouts += 1;
      offset = String(headers["stream-next-offset"]);
      cursor = headers["stream-cursor"] === undefined ? cursor : `cursor=${String(headers["stream-cursor"])}&`;
      for (const look of [...this.#looks]) look();
      if (headers["stream-closed"] === "true") return;
      if (status === 204) await step?.arrive();
    }
  }

  /** Resolves when `isDone` holds for all readers; rejects when one of them ends with a fault before. */
  async all(isDone: (reader: CrowdReader) => boolean): Promise<void> {
    const waiting = new Set(this.readers);
    const reached = new Promise<void>((resolve) => {
      const look = (): void => {
        for (const reader of waiting) if (isDone(reader)) waiting.delete(reader);
        if (waiting.size > 0) return;
        this.#looks.delete(look);
        resolve();
      };
      this.#looks.add(look);
      look();
    });
    await Promise.race([reached, this.#fault()]);
  }

  /** Resolves when all have been told that the stream is closed. */
  async end(): Promise<void> {
    await Promise.all(this.#done);
  }

  /** Rejects with the first reader that fails. */
  #fault(): Promise<void> {
    return new Promise((_resolve, reject) => {
      for (const done of this.#done) done.catch(reject);
    });
  }
}
