import type { Clock } from "../../../ops/clock.js";
import type { Settlement, StreamConfig } from "../../storage.js";
import { decodeChange } from "../log/change.js";
import { LogUnavailableError, type LogMessage, type Published } from "../log/replicated-log.js";
import type { Subjects } from "../log/subjects.js";
import type { ClusterStream } from "../memory/cluster-stream.js";
import type { ClusterParts } from "../reading/state-reader.js";
import { publishAnyhow, type PublishingOptions } from "./publishing.js";

type Settle = (how: Settlement) => void;

/** When a stream was read, and who asks what becomes of that. */
interface Note {
  /** The newest read that it stands for. */
  atMs: number;
  /** When the oldest of them was submitted, by the stopwatch. */
  readonly sinceMs: number;
  readonly asked: Settle[];
}

/**
 * Notes when streams were read. That goes on beside their changes: a note that nobody takes keeps no append waiting. In
 * each stream one note is on its way, and one more stands for all reads that come meanwhile.
 */
export class ReadNotes {
  readonly #subjects: Subjects;
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #publishing: PublishingOptions;
  readonly #onFault: (fault: unknown) => void;
  /** What waits in streams that have a note on its way; `null` for nothing. */
  readonly #waiting = new Map<ClusterStream, Note | null>();
  /** The last that was submitted, while nobody has asked what becomes of it and it is not over. */
  #unasked: { readonly stream: ClusterStream; readonly note: Note } | null = null;

  /** `onFault` is told what must not happen. */
  constructor(
    { subjects, clock }: Pick<ClusterParts, "subjects" | "clock">,
    publishing: PublishingOptions,
    onFault: (fault: unknown) => void,
  ) {
    this.#subjects = subjects;
    this.#clock = clock;
    this.#publishing = publishing;
    this.#onFault = onFault;
  }

  /** Whether no note of the stream is on its way. */
  isIdle(stream: ClusterStream): boolean {
    return !this.#waiting.has(stream);
  }

  /** Notes a read. */
  note(stream: ClusterStream, atMs: number): void {
    const waiting = this.#waiting.get(stream);
    const note = waiting ?? { atMs, sinceMs: this.#publishing.stopwatchMs(), asked: [] };
    note.atMs = Math.max(note.atMs, atMs);
    this.#unasked = { stream, note };
    if (waiting === null) this.#waiting.set(stream, note);
    else if (waiting === undefined) void this.#run(stream, note);
  }

  /** Has `settle` told what becomes of the note that was submitted last; `false` unless it is of this stream. */
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
      const how = await this.#store(stream, note, note !== first);
      if (this.#unasked?.note === note) this.#unasked = null;
      const { asked } = note;
      note = this.#waiting.get(stream) ?? null;
      if (note === null) this.#waiting.delete(stream);
      for (const settle of asked) settle(how);
    }
  }

  async #store(stream: ClusterStream, { atMs, sinceMs }: Note, hasWaited: boolean): Promise<Settlement> {
    const { stopwatchMs, timeoutMs } = this.#publishing;
    // The time that it has waited counts: no read waits longer than for a note that is on its way at once.
    const leftMs = Math.max(0, sinceMs + timeoutMs - stopwatchMs());
    const publishing = { ...this.#publishing, timeoutMs: leftMs };
    // Whoever evicts a stream notes a read that was long ago: another server may have noted a later one since.
    let isLate = hasWaited || atMs < this.#clock.nowMs();
    const publish = (): Promise<Published["kind"]> => {
      const published = this.#publish(stream, atMs, isLate);
      isLate = true;
      return published;
    };
    const noted = await publishAnyhow(publishing, publish).catch(this.#onFault);
    if (noted !== "stored") return noted === "full" ? "storage-full" : "overloaded";
    stream.state.touchedAtMs = Math.max(stream.state.touchedAtMs, atMs);
    return "durable";
  }

  /** One that may come late is stored only in place of what was there when it was looked at. */
  async #publish(stream: ClusterStream, atMs: number, isLate: boolean): Promise<Published["kind"]> {
    const { log } = this.#publishing;
    const subject = this.#subjects.ofTouch(stream.name);
    try {
      const last = isLate ? await log.last(subject) : null;
      if (last !== null && (await this.#outweighs(last, stream, atMs))) return "stored";
      const expected = isLate ? (last?.sequence ?? 0) : null;
      return (await log.publish(subject, stream.id, Buffer.from(String(atMs)), expected)).kind;
    } catch (fault) {
      if (fault instanceof LogUnavailableError) return "untaken";
      throw fault;
    }
  }

  /** Whether a note tells of a later read, or of a stream that has the name since. */
  async #outweighs({ head, body }: LogMessage, { name, id }: ClusterStream, atMs: number): Promise<boolean> {
    if (head === id) return Number(body.toString()) >= atMs;
    const there = await this.#publishing.log.last(this.#subjects.ofStream(name));
    return there === null || decodeChange(there).change.id !== id;
  }
}

/** Drops the note of the last read of a deleted stream; not that of a stream which has the name since. */
export async function dropNote(
  { log, subjects }: Pick<ClusterParts, "log" | "subjects">,
  { name, id, config }: { readonly name: string; readonly id: string; readonly config: StreamConfig },
): Promise<void> {
  if (config.ttlSeconds === null) return;
  const subject = subjects.ofTouch(name);
  const last = await log.last(subject);
  if (last?.head === id) await log.purge(subject, last.sequence + 1);
}
