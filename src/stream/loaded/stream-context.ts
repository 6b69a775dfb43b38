import type { Clock } from "../../ops/clock.js";
import type { RetentionLimits, Storage } from "../../storage/storage.js";
import type { AppendCommand } from "../rules/command.js";
import type { TtlMode } from "../rules/expiry.js";
import type { AnswerAppend } from "../rules/outcome.js";
import type { CountedStream, LoadedProducers } from "./loaded-producers.js";
import type { ReadRoom } from "./read-room.js";

/** The parts that all streams `S` of a server share. */
export interface StreamContextOf<S extends CountedStream> {
  readonly storage: Storage;
  readonly readRoom: ReadRoom;
  readonly clock: Clock;
  readonly ttlMode: TtlMode;
  readonly retention: RetentionLimits;
  readonly producers: LoadedProducers<S>;
  /** Whether a stream in memory may remember one more producer. */
  readonly hasRoomForProducer: () => boolean;
  /** Decides an append again, on whatever stream has the name now: another server has changed this one. */
  readonly decideAgain: (stream: S, command: AppendCommand, answer: AnswerAppend, contention: Contention) => void;
}

/** How often an append was decided again because another server was first, and since when. */
export interface Contention {
  readonly rounds: number;
  readonly sinceMs: number;
}
