import { nextOf, pause, type Answer, type Fronts } from "./fronts.js";
import type { Ledger, StreamNotes } from "./ledger.js";

/** An append that was acknowledged; `end` is `null` where the answer was that of a repeated one. */
export interface Acknowledged {
  readonly seq: number;
  readonly end: number | null;
}

/** One client that writes lines `ID.SEQ:PADDING`, each until it is acknowledged. */
export interface Writer {
  readonly id: string;
  readonly stream: string;
  readonly acknowledged: readonly Acknowledged[];
  run(): Promise<void>;
}

/** How fast a writer is. */
export interface WriterOptions {
  readonly fronts: Fronts;
  readonly ledger: Ledger;
  /** Between an answer and the next append. */
  readonly restMs: number;
}

/** What a writer sends; its length differs, so that a wrong place is seen. */
export function lineOf(id: string, seq: number): string {
  return `${id}.${seq}:${"x".repeat(20 + ((seq * 7) % 90))}\n`;
}

const TEXT = { "Content-Type": "text/plain" };

/** An idempotent producer: it repeats what has no answer with the same epoch and sequence, through either front end. */
export class ProducingWriter implements Writer {
  readonly acknowledged: Acknowledged[] = [];
  readonly id: string;
  readonly stream: string;
  readonly #options: WriterOptions;
  readonly #notes: StreamNotes;
  #front: number;

  constructor(options: WriterOptions, id: string, stream: string, front: number) {
    this.id = id;
    this.stream = stream;
    this.#options = options;
    this.#notes = options.ledger.streamOf(stream);
    this.#front = front;
  }

  async run(): Promise<void> {
    const { ledger, restMs } = this.#options;
    for (let seq = 0; !ledger.isOver; seq += 1) {
      await this.#append(seq);
      await pause(restMs * (0.5 + Math.random()));
    }
  }

  headersOf(seq: number): Record<string, string> {
    return { ...TEXT, "Producer-Id": this.id, "Producer-Epoch": "0", "Producer-Seq": String(seq) };
  }

  async #append(seq: number): Promise<void> {
    const { fronts, ledger } = this.#options;
    const parts = { headers: this.headersOf(seq), body: lineOf(this.id, seq) };
    let tries = 0;
    const answer = await fronts.insist(this.#front, "POST", this.stream, parts, (why) => {
      tries += 1;
      ledger.noteRetry(why);
    });
    this.#front += tries;
    if (answer.status === 200) return this.#note(seq, nextOf(answer));
    // Only what was sent before can be a duplicate.
    if (answer.status === 204 && tries > 0) return this.#note(seq, null);
    ledger.violated(`${this.id} seq ${seq} after ${tries} retries: ${answer.status} ${answer.body.toString()}`);
  }

  #note(seq: number, end: number | null): void {
    this.acknowledged.push({ seq, end });
    this.#notes.noteAck(end);
  }
}

/** A writer that has no producer's id: `Stream-Seq` is what tells whether an append of unknown outcome is there. */
export class SequencedWriter implements Writer {
  readonly acknowledged: Acknowledged[] = [];
  readonly id: string;
  readonly stream: string;
  readonly #options: WriterOptions;
  readonly #notes: StreamNotes;

  constructor(options: WriterOptions, id: string, stream: string) {
    this.id = id;
    this.stream = stream;
    this.#options = options;
    this.#notes = options.ledger.streamOf(stream);
  }

  async run(): Promise<void> {
    const { ledger, restMs } = this.#options;
    for (let seq = 0; !ledger.isOver; seq += 1) {
      await this.#append(seq);
      await pause(restMs * (0.5 + Math.random()));
    }
  }

  async #append(seq: number): Promise<void> {
    const { fronts, ledger } = this.#options;
    const headers = { ...TEXT, "Stream-Seq": sequenceOf(seq) };
    let tries = 0;
    const answer = await fronts.insist(seq, "POST", this.stream, { headers, body: lineOf(this.id, seq) }, (why) => {
      tries += 1;
      ledger.noteRetry(why);
    });
    const end = endOf(answer, tries > 0);
    if (end === undefined)
      ledger.violated(`${this.id} Stream-Seq ${seq} after ${tries} retries: ${answer.status} ${answer.body.toString()}`);
    else {
      this.acknowledged.push({ seq, end });
      this.#notes.noteAck(end);
    }
  }
}

/** Where an append ends; `null` where an earlier try has stored it, `undefined` where it should have been stored. */
function endOf(answer: Answer, isRepeated: boolean): number | null | undefined {
  if (answer.status === 204) return nextOf(answer);
  const isThere = answer.status === 409 && isRepeated && answer.body.includes("stream-seq-regression");
  return isThere ? null : undefined;
}

/** A `Stream-Seq`, which is compared as text. */
export function sequenceOf(seq: number): string {
  return String(seq).padStart(9, "0");
}
