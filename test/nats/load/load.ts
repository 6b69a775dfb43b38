import assert from "node:assert/strict";
import { Fronts, nextOf, pause } from "./fronts.js";
import { Ledger, type LoadFigures } from "./ledger.js";
import { Lifecycles } from "./lifecycles.js";
import { CatchUpReader, EventReader, type Reader } from "./readers.js";
import { lineOf, ProducingWriter, sequenceOf, SequencedWriter, type Writer } from "./writers.js";

/** What was found when a load was over. */
export interface LoadResult extends LoadFigures {
  readonly lost: number;
  readonly twice: number;
  /** Streams that were made and closed or deleted beside. */
  readonly lifecycles: number;
}

/** How much is written. */
export interface LoadOptions {
  readonly producers?: number;
  readonly streams?: number;
  /** Between an answer and a producer's next append. */
  readonly restMs?: number;
  /** The beginning of all names. */
  readonly prefix?: string;
}

/** Longest time for what goes on by itself once the servers do. */
const RECOVERED_WITHIN_MS = 60_000;

/** Producers and readers at two front ends, and what they were told. */
export class Load {
  readonly fronts: Fronts;
  readonly ledger = new Ledger();
  readonly #writers: readonly Writer[];
  readonly #readers: readonly Reader[];
  readonly #lifecycles: Lifecycles;
  /** All that is written to. */
  readonly streams: readonly string[];
  #writing: Promise<unknown> = Promise.resolve();
  #reading: Promise<unknown> = Promise.resolve();

  constructor(urls: readonly string[], { producers = 32, streams = 8, restMs = 10, prefix = "load/" }: LoadOptions = {}) {
    this.fronts = new Fronts(urls);
    const options = { fronts: this.fronts, ledger: this.ledger, restMs };
    const shared = Array.from({ length: streams }, (_, at) => `${prefix}s${at}`);
    const sequenced = ["q0", "q1"].map((name) => `${prefix}${name}`);
    this.streams = [...shared, ...sequenced];
    this.#writers = [
      ...Array.from(
        { length: producers },
        (_, at) => new ProducingWriter(options, `p${at}`, shared[at % streams] ?? "", Math.floor(at / streams)),
      ),
      ...sequenced.map((stream, at) => new SequencedWriter(options, `w${at}`, stream)),
    ];
    this.#readers = this.streams.flatMap((stream, at) => [
      new EventReader(this.fronts, this.ledger, stream, at),
      new CatchUpReader(this.fronts, this.ledger, stream, at + 1),
    ]);
    this.#lifecycles = new Lifecycles(this.fronts, this.ledger, `${prefix}c`);
  }

  /** Makes the streams and begins. */
  async start(): Promise<void> {
    const headers = { "Content-Type": "text/plain" };
    for (const [at, stream] of this.streams.entries()) {
      const { status } = await this.fronts.insist(at, "PUT", stream, { headers });
      assert.ok(status === 201 || status === 200, `PUT ${stream}: ${status}`);
    }
    for (const notes of this.ledger.streams.values()) notes.lastAckAtMs = performance.now();
    this.#writing = Promise.all([...this.#writers.map((writer) => writer.run()), this.#lifecycles.run()]);
    this.#reading = Promise.all(this.#readers.map((reader) => reader.run()));
    await this.written(5);
  }

  /** Resolves when each stream has so many more acknowledged appends than now. */
  async written(count = 3): Promise<void> {
    const notes = [...this.ledger.streams.values()];
    const wanted = notes.map(({ acked }) => acked + count);
    await this.#within("each stream is written to", () => notes.every(({ acked }, at) => acked >= (wanted[at] ?? 0)));
  }

  async #within(what: string, holds: () => boolean): Promise<void> {
    const untilMs = performance.now() + RECOVERED_WITHIN_MS;
    while (!holds()) {
      assert.deepEqual(this.ledger.violations, []);
      assert.ok(performance.now() < untilMs, `not within ${RECOVERED_WITHIN_MS / 1000} s: ${what}`);
      await pause(20);
    }
  }

  /** Ends the writers, lets the readers read to the end, and checks all that was answered. */
  async finish(): Promise<LoadResult> {
    this.ledger.isOver = true;
    await this.#writing;
    const texts = new Map<string, string>();
    for (const [at, stream] of this.streams.entries()) texts.set(stream, await this.#textOf(stream, at));
    await this.#within("each reader has read all", () =>
      this.#readers.every(({ stream, length }) => length >= (texts.get(stream) ?? "").length),
    );
    this.stop();
    await this.#reading;
    for (const reader of this.#readers)
      if (reader.seen().toString("latin1") !== texts.get(reader.stream)) this.ledger.violated(`${reader.name} saw something else`);
    await this.#lifecycles.check();
    await this.#checkSequences();
    const counts = this.#writers.map((writer) => this.#checkWriter(writer, texts.get(writer.stream) ?? ""));
    this.#checkLines(texts);
    this.fronts.close();
    return {
      ...this.ledger.figures,
      lost: counts.reduce((sum, { lost }) => sum + lost, 0),
      twice: counts.reduce((sum, { twice }) => sum + twice, 0),
      lifecycles: this.#lifecycles.count,
    };
  }

  /** Ends all, also where something failed. */
  stop(): void {
    this.ledger.isOver = true;
    for (const reader of this.#readers) reader.stop();
  }

  /** All of a stream, which both front ends have to agree on. */
  async #textOf(stream: string, at: number): Promise<string> {
    const [text = "", other] = await Promise.all([0, 1].map((front) => this.#readAll(stream, at + front)));
    if (text !== other) this.ledger.violated(`the front ends have different bytes of ${stream}`);
    return text;
  }

  async #readAll(stream: string, front: number): Promise<string> {
    let text = "";
    for (let offset = "-1"; ;) {
      const answer = await this.fronts.insist(front, "GET", `${stream}?offset=${offset}`);
      assert.equal(answer.status, 200, answer.body.toString());
      text += answer.body.toString("latin1");
      offset = String(answer.headers["stream-next-offset"]);
      if (nextOf(answer) !== text.length) this.ledger.violated(`${stream} has ${text.length} bytes at ${offset}`);
      if (answer.headers["stream-up-to-date"] === "true") return text;
    }
  }

  /** Everything that a writer was told is there once, in its order, where it was answered; nothing else of it is. */
  #checkWriter({ id, acknowledged }: Writer, text: string): { readonly lost: number; readonly twice: number } {
    const ends: number[][] = [];
    let before = -1;
    for (const { 0: line, 1: seq, index } of text.matchAll(new RegExp(`^${id}\\.(\\d+):x*\n`, "gm"))) {
      (ends[Number(seq)] ??= []).push(index + line.length);
      if (Number(seq) < before) this.ledger.violated(`${id}: ${seq} stands behind ${before}`);
      if (line !== lineOf(id, Number(seq))) this.ledger.violated(`${id}: ${seq} has other bytes`);
      before = Number(seq);
    }
    for (const { seq, end } of acknowledged)
      if (end !== null && ends[seq]?.[0] !== end) this.ledger.violated(`${id}: ${seq} ends at ${ends[seq]?.[0]}, and ${end} was answered`);
    if (ends.length > acknowledged.length) this.ledger.violated(`${id}: more is stored than was sent`);
    return {
      lost: acknowledged.filter(({ seq }) => ends[seq] === undefined).length,
      twice: ends.filter((places) => places.length > 1).length,
    };
  }

  /** Every line is one that a writer of that stream sent. */
  #checkLines(texts: ReadonlyMap<string, string>): void {
    for (const [stream, text] of texts) {
      const ids = new Set(this.#writers.filter((writer) => writer.stream === stream).map(({ id }) => id));
      for (const line of text.split("\n").slice(0, -1)) {
        const id = /^(\w+)\.\d+:x+$/.exec(line)?.[1] ?? "";
        if (!ids.has(id)) this.ledger.violated(`${stream} has a line that nobody wrote: ${line.slice(0, 100)}`);
      }
    }
  }

  /** No `Stream-Seq` that was acknowledged is taken again, and no producer's number. */
  async #checkSequences(): Promise<void> {
    for (const [at, writer] of this.#writers.entries()) {
      const last = writer.acknowledged.at(-1)?.seq;
      if (last === undefined) continue;
      const isProducer = writer instanceof ProducingWriter;
      const headers = isProducer ? writer.headersOf(last) : { "Content-Type": "text/plain", "Stream-Seq": sequenceOf(last) };
      for (const front of [0, 1]) {
        const { status } = await this.fronts.insist(at + front, "POST", writer.stream, { headers, body: "again\n" });
        if (status !== (isProducer ? 204 : 409)) this.ledger.violated(`${writer.id}: ${last} once more: ${status}`);
      }
    }
  }

  /** What a load found, in one line. */
  static summaryOf(fault: string, { acked, retries, longestPauseMs, lost, twice, lifecycles }: LoadResult): string {
    const pauseSeconds = (longestPauseMs / 1000).toFixed(1);
    const retried = [...retries.values()].reduce((sum, count) => sum + count, 0);
    const why = retried === 0 ? "" : ` (${[...retries].map(([cause, count]) => `${count} ${cause}`).join(", ")})`;
    const written = `${fault}: ${acked} acked, ${retried} retried${why}, longest pause ${pauseSeconds} s`;
    return `${written}, lost ${lost}, twice ${twice}; ${lifecycles} streams made and ended`;
  }
}
