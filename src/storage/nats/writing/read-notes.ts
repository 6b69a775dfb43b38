import type { Settlement } from "../../storage.js";
import type { Subjects } from "../log/subjects.js";
import type { ClusterStream } from "../memory/cluster-stream.js";
import { publishAnyhow, type PublishingOptions } from "./publishing.js";

type Settle = (how: Settlement) => void;

/** When a stream was read, and who asks what becomes of that. */
interface Note {
  /** The newest read that it stands for. */
  atMs: number;
  /** When the oldest of them was handed in. */
  readonly sinceMs: number;
  readonly asked: Settle[];
}

/**
 * Notes when streams were read. That goes on beside their changes: a note that nobody takes keeps no append waiting. In
 * each stream one note is on its way, and one more stands for all reads that come meanwhile.
 */
export class ReadNotes {
  readonly #subjects: Subjects;
  readonly #publishing: PublishingOptions;
  /** What waits in streams that have a note on its way; `null` for nothing. */
  readonly #waiting = new Map<ClusterStream, Note | null>();
  /** The last that was handed in, while nobody has asked what becomes of it and it is not over. */
  #unasked: { readonly stream: ClusterStream; readonly note: Note } | null = null;

  constructor(subjects: Subjects, publishing: PublishingOptions) {
    this.#subjects = subjects;
    this.#publishing = publishing;
  }

  /** Whether no note of the stream is on its way. */
  isIdle(stream: ClusterStream): boolean {
    return !this.#waiting.has(stream);
  }

  /** Notes a read. */
  note(stream: ClusterStream, atMs: number): void {
    const waiting = this.#waiting.get(stream);
    const note = waiting ?? { atMs, sinceMs: this.#publishing.clock.nowMs(), asked: [] };
    note.atMs = Math.max(note.atMs, atMs);
    this.#unasked = { stream, note };
    if (waiting === null) this.#waiting.set(stream, note);
    else if (waiting === undefined) void this.#run(stream, note);
  }

  /** Has `settle` told what becomes of the note that was handed in last; `false` unless it is of this stream. */
  ask(stream: ClusterStream, settle: Settle): boolean {
    const unasked = this.#unasked;
    if (unasked?.stream !== stream) return false;
    this.#unasked = null;
    unasked.note.asked.push(settle);
    return true;
  }

  /** Stores one note after the other until none is left. */
  async #run(stream: ClusterStream, first: Note): Promise<void> {
    for (let note: Note | null = first; note !== null;) {
      this.#waiting.set(stream, null);
      const how = await this.#store(stream, note);
      if (this.#unasked?.note === note) this.#unasked = null;
      const { asked } = note;
      note = this.#waiting.get(stream) ?? null;
      if (note === null) this.#waiting.delete(stream);
      for (const settle of asked) settle(how);
    }
  }

  async #store(stream: ClusterStream, { atMs, sinceMs }: Note): Promise<Settlement> {
    const { clock, timeoutMs } = this.#publishing;
    // The time that it has waited counts: no read waits longer than for a note that is on its way at once.
    const leftMs = Math.max(0, sinceMs + timeoutMs - clock.nowMs());
    const publishing = { ...this.#publishing, timeoutMs: leftMs };
    const subject = this.#subjects.ofTouch(stream.name);
    const noted = await publishAnyhow(publishing, subject, stream.id, Buffer.from(String(atMs)));
    if (noted !== "stored") return noted === "full" ? "storage-full" : "overloaded";
    stream.state.touchedAtMs = Math.max(stream.state.touchedAtMs, atMs);
    return "durable";
  }
}
