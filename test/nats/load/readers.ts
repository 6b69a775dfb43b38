import { once } from "node:events";
import http from "node:http";
import { parseEventStream } from "../../protocol/event-stream-parser.js";
import { nextOf, pause, positionOf, type Fronts } from "./fronts.js";
import type { Ledger } from "./ledger.js";

/** A client that reads one stream from its start and keeps what it saw. */
export interface Reader {
  readonly name: string;
  readonly stream: string;
  /** Bytes that it was given, up to a place that it was told. */
  readonly length: number;
  seen(): Buffer;
  run(): Promise<void>;
  /** Ends it. */
  stop(): void;
}

const START = "-1";

/** Reads again and again from where the last read ended; what is said to be the tail has all that was acknowledged. */
export class CatchUpReader implements Reader {
  readonly name: string;
  readonly stream: string;
  length = 0;
  readonly #fronts: Fronts;
  readonly #ledger: Ledger;
  readonly #pieces: Buffer[] = [];
  #front: number;
  #isStopped = false;

  constructor(fronts: Fronts, ledger: Ledger, stream: string, front: number) {
    this.name = `catch-up reader of ${stream}`;
    this.stream = stream;
    this.#fronts = fronts;
    this.#ledger = ledger;
    this.#front = front;
  }

  seen(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  stop(): void {
    this.#isStopped = true;
  }

  async run(): Promise<void> {
    const notes = this.#ledger.streamOf(this.stream);
    for (let offset = START; !this.#isStopped; await pause(20 + 60 * Math.random())) {
      const ackedEnd = notes.ackedEnd;
      const answer = await this.#fronts.ask(this.#front, "GET", `${this.stream}?offset=${offset}`);
      if (answer === null || answer.status === 503) {
        this.#front += 1;
        continue;
      }
      if (answer.status !== 200) {
        this.#ledger.violated(`${this.name} at ${offset}: ${answer.status} ${answer.body.toString()}`);
        return;
      }
      this.#pieces.push(answer.body);
      this.length += answer.body.length;
      offset = String(answer.headers["stream-next-offset"]);
      if (nextOf(answer) !== this.length) this.#ledger.violated(`${this.name} has ${this.length} bytes at ${offset}`);
      const isAtTail = answer.headers["stream-up-to-date"] === "true";
      if (isAtTail && this.length < ackedEnd)
        this.#ledger.violated(`${this.name} was told that ${this.length} is the tail after ${ackedEnd} was acknowledged`);
    }
  }
}

/** Follows by Server-Sent Events, and goes on at the other front end where the connection ends. */
export class EventReader implements Reader {
  readonly name: string;
  readonly stream: string;
  length = 0;
  readonly #fronts: Fronts;
  readonly #ledger: Ledger;
  readonly #pieces: Buffer[] = [];
  readonly #stopping = new AbortController();
  #front: number;
  #offset = START;
  /** What came behind the last place that was told; to come again after a break. */
  #ahead = "";

  constructor(fronts: Fronts, ledger: Ledger, stream: string, front: number) {
    this.name = `SSE reader of ${stream}`;
    this.stream = stream;
    this.#fronts = fronts;
    this.#ledger = ledger;
    this.#front = front;
  }

  seen(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  stop(): void {
    this.#stopping.abort();
  }

  async run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#follow();
      } catch (fault) {
        if (!(fault instanceof Error)) throw fault;
        this.#front += 1;
        await pause(50);
      }
    }
  }

  async #follow(): Promise<void> {
    const target = `${this.stream}?live=sse&offset=${this.#offset}`;
    const request = http.get(this.#fronts.urlOf(this.#front, target), { agent: false, signal: this.#stopping.signal });
    const [response] = (await once(request, "response")) as [http.IncomingMessage]; // the event's argument
    if (response.statusCode !== 200) {
      response.resume();
      if (response.statusCode !== 503) this.#ledger.violated(`${this.name} at ${this.#offset}: ${response.statusCode}`);
      throw new Error(`answered with ${response.statusCode}`);
    }
    const before = this.#ahead;
    this.#ahead = "";
    let text = "";
    for await (const chunk of response.setEncoding("latin1")) {
      text += String(chunk);
      const end = text.lastIndexOf("\n\n") + 2;
      if (end < 2) continue;
      for (const { type, data } of parseEventStream(text.slice(0, end))) this.#take(type, data, before);
      text = text.slice(end);
    }
  }

  #take(type: string, data: string, before: string): void {
    if (type === "data") {
      this.#ahead += data;
      return;
    }
    const common = Math.min(before.length, this.#ahead.length);
    if (this.#ahead.slice(0, common) !== before.slice(0, common))
      this.#ledger.violated(`${this.name} at ${this.#offset} was given something else the second time`);
    const { streamNextOffset } = JSON.parse(data) as { streamNextOffset: string }; // what every control event has
    this.#pieces.push(Buffer.from(this.#ahead, "latin1"));
    this.length += this.#ahead.length;
    this.#ahead = "";
    this.#offset = streamNextOffset;
    if (positionOf(streamNextOffset) !== this.length) this.#ledger.violated(`${this.name} has ${this.length} bytes at ${streamNextOffset}`);
  }
}
