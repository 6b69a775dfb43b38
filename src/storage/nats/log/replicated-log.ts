// What the engine needs of a replicated log: subjects with messages in one order, and compare-and-swap on each.

/** A message as the log has it. */
export interface LogMessage {
  /** Its place in its shard, from 1 on; never used again. */
  readonly sequence: number;
  /** The subject's last sequence when it was stored, as its publisher expected it; 0 for the first. */
  readonly previous: number;
  /** One line of JSON (see change.ts). */
  readonly head: string;
  readonly body: Buffer;
}

/**
 * How a publish ended: it is `stored`; another message follows the expected one (`moved`) or is on its way there
 * (`pending`), and this attempt had no effect; nobody took it (`untaken`); this server may not publish it (`refused`);
 * there is no room (`full`); or nobody can say (`unknown`).
 */
export type Published =
  | { readonly kind: "stored"; readonly sequence: number }
  | { readonly kind: "moved" | "pending" | "untaken" | "refused" | "full" | "unknown" };

/** What a subject is for: the changes of a stream, or the edge of a fork. */
export type SubjectKind = "streams" | "edges";

/** Whether the log takes writes; `reason` says why not, or what else is wrong where it does. */
export interface LogHealth {
  readonly writable: boolean;
  readonly reason: string | null;
}

/** Thrown where the log has no answer now; a retry succeeds once its servers have a leader again. */
export class LogUnavailableError extends Error {
  override readonly name = "LogUnavailableError";
  /** What of the log does not answer, for {@link ReplicatedLog.untilLed}. */
  readonly part: string;

  constructor(message: string, part: string) {
    super(message);
    this.part = part;
  }
}

/** Hears of each part of the log that does not answer. */
export type OnUnavailable = (fault: LogUnavailableError) => void;

/**
 * A replicated log. Subjects are as subjects.ts writes them. What "the leader says" is no older than anything that was
 * acknowledged before the call, whoever published it. Calls throw {@link LogUnavailableError}, unless said otherwise.
 */
export interface ReplicatedLog {
  /** The most bytes of a body now: it may become another when the servers are restarted. */
  readonly maxBodyBytes: number;
  /** Stores a message if the subject's last sequence is `expected`; in any case where that is `null`. Never throws. */
  publish(subject: string, head: string, body: Buffer, expected: number | null): Promise<Published>;
  /** The subject's last message, as the leader says. */
  last(subject: string): Promise<LogMessage | null>;
  /** The first message at `sequence` or after it, as the leader says. The subject may have a `*` for its last token. */
  next(subject: string, sequence: number): Promise<LogMessage | null>;
  /** The same as any server says: it may be behind. */
  find(subject: string, sequence: number): Promise<LogMessage | null>;
  /** Messages from `sequence` on, about `maxBytes` and at least one, as any server has them: it may be behind. */
  range(subject: string, sequence: number, maxBytes: number): Promise<readonly LogMessage[]>;
  /** How many subjects of a filter have messages, as the leader says. */
  count(filter: string): Promise<number>;
  /**
   * Waits until a part of the log that did not answer has a leader again: `false` where it has had none for longer than
   * an election takes, and at once while that goes on. Never throws.
   */
  untilLed(part: string): Promise<boolean>;
  /**
   * Whether a message has been there for so long that whoever published it has seen all that it was for; `false` where
   * this front end can't say. Its clock never jumps.
   */
  hasSettled(subject: string, sequence: number): boolean;
  /** Drops the messages of a subject before `sequence`; all of them where that is `null`. */
  purge(subject: string, sequence: number | null): Promise<void>;
  /**
   * The last message of each subject of streams, or of edges, without its body; those that change meanwhile may be left
   * out, or come twice. What a part has that does not answer is left out where `onUnavailable` is told of it.
   */
  heads(of: SubjectKind, onUnavailable?: OnUnavailable): AsyncIterable<Omit<LogMessage, "body">>;
  /**
   * Tells of each message of a subject soon after it is stored, where its sequence `isNews`: a hint, which may be lost,
   * or come late or twice. Ends with the function that it returns.
   */
  watch(subject: string, isNews: (sequence: number) => boolean, onMessage: (message: LogMessage) => void): () => void;
  /** Tells all front ends, this one as well, something that they may miss. */
  announce(text: string): void;
  /** Calls for each announcement, and `onGap` where hints and announcements may have been missed. */
  listen(onAnnounced: (text: string) => void, onGap: () => void): void;
  health(): LogHealth;
  close(): Promise<void>;
}

/** What some work on the log gives; `null` where a part of it does not answer, which is told. */
export async function whereAvailable<T>(work: () => Promise<T>, onUnavailable: OnUnavailable): Promise<T | null> {
  try {
    return await work();
  } catch (fault) {
    if (!(fault instanceof LogUnavailableError)) throw fault;
    onUnavailable(fault);
    return null;
  }
}
