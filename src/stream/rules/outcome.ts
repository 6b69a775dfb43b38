import { DamagedStreamError, StorageBusyError, type Rejection, type Settlement } from "../../storage/storage.js";

/** The expected answers of the stream layer, as values. What is thrown is a fault of the program or the machine. */

/** Why a request was refused. The names are the `code` of the problem document that the client gets. */
export type RefusalCode =
  | "stream-not-found"
  | "stream-gone"
  | "name-held-by-forks"
  | "fork-source-gone"
  | "too-many-forks"
  | "invalid-fork"
  | "stream-closed"
  | "config-mismatch"
  | "content-type-missing"
  | "content-type-mismatch"
  | "empty-body"
  | "empty-json-array"
  | "invalid-json"
  | "stale-epoch"
  | "epoch-must-start-at-zero"
  | "producer-gap"
  | "too-many-producers"
  | "stream-seq-regression"
  | "tail-moved"
  | "invalid-offset"
  | "offset-gone"
  | "body-too-large"
  | "overloaded"
  | "outcome-unknown"
  | "storage-full"
  | "storage-unavailable"
  | "stream-damaged";

/** A refusal, and what its answer carries. A refused request changed nothing. */
export interface Refused {
  readonly kind: "refused";
  readonly code: RefusalCode;
  /** One sentence for people, where the code does not say enough. */
  readonly detail?: string;
  /** The values in the detail, for programs: members of the problem document. */
  readonly facts?: Readonly<Record<string, string | number | readonly string[]>>;
  /** The stream's tail as an offset token. */
  readonly nextOffset?: string;
  /** The earliest retained byte, as an offset token. */
  readonly earliestOffset?: string;
  readonly closed?: boolean;
  readonly producerEpoch?: number;
  /** The highest sequence number of the epoch that was accepted. */
  readonly producerSeq?: number;
  readonly expectedSeq?: number;
  readonly receivedSeq?: number;
}

/** The highest accepted epoch and sequence number of a producer. */
export interface ProducerEcho {
  readonly epoch: number;
  readonly seq: number;
}

/** The bytes (or the closure) are durable; `duplicate` when they already were. */
export interface Appended {
  readonly kind: "appended";
  readonly duplicate: boolean;
  /** Whether the request carried data (a close-only request does not). */
  readonly hasData: boolean;
  readonly nextOffset: string;
  readonly closed: boolean;
  readonly producer: ProducerEcho | null;
}

/** The stream exists as requested: it was created now, or already existed with the same configuration. */
export interface Created {
  readonly kind: "created";
  readonly created: boolean;
  readonly contentType: string;
  readonly nextOffset: string;
  readonly closed: boolean;
}

/** The stream is gone, durably. */
export interface Deleted {
  readonly kind: "deleted";
}

/** How an append or a close ends. */
export type AppendOutcome = Appended | Refused;
/** Receives an append's outcome once, perhaps before the call returns. Must not throw: many are called in a row. */
export type AnswerAppend = (outcome: AppendOutcome) => void;
/** How a create ends. */
export type CreateOutcome = Created | Refused;
/** How a delete ends. */
export type DeleteOutcome = Deleted | Refused;

/** A refusal with `code` and whatever else its answer carries. */
export function refuse(code: RefusalCode, more: Omit<Refused, "kind" | "code"> = {}): Refused {
  return { kind: "refused", code, ...more };
}

/**
 * What was decided rests on a state that another server has changed since: decide again. A client gets it only where
 * that goes on for too long.
 */
export const MOVED: Refused = refuse("overloaded", { detail: "Other servers change the stream too fast." });

/** The refusal where no stream has the name. */
export const NOT_FOUND: Refused = refuse("stream-not-found");

/** The refusal where a deleted stream still has the name, as its forks need it. */
export const GONE: Refused = refuse("stream-gone");

/** How often a change is decided again because other servers were first. */
export const MAX_ROUNDS = 50;

/** The refusal of a change that did not become durable, or that nobody knows to be. */
export function refuseSettled(how: Exclude<Settlement | Rejection, "durable">): Refused {
  if (how === "tail-moved" || how === "exists") return MOVED;
  return refuse(how === "unknown" ? "outcome-unknown" : how);
}

/** The refusal for a change that storage does not take now. */
export function refuseRejected(rejection: Rejection): Refused {
  return refuse(rejection === "tail-moved" ? "overloaded" : rejection);
}

/** The refusal for what an append threw that nobody waits for. */
export function refusalOfFault(fault: unknown): Refused {
  if (fault instanceof DamagedStreamError) return refuse("stream-damaged");
  return refuse(fault instanceof StorageBusyError ? "overloaded" : "storage-unavailable");
}

/** The refusal of the deletion of a damaged stream that others were forked from. */
export const DAMAGED_WITH_FORKS: Refused = refuse("stream-damaged", {
  detail: "Forks may need what is left of it; the log names the first ten. Delete them first, or repair it.",
});

/** The refusal of a new producer when memory has no room for more, and no stream is idle. */
export const TOO_MANY_PRODUCERS: Refused = refuse("overloaded", { detail: "Too many producers are in use." });

/** The refusal of one more stream when memory has no room for it, and none of those in it is idle. */
export const TOO_MANY_STREAMS: Refused = refuse("overloaded", { detail: "Too many streams are in use." });
