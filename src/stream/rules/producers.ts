import type { ProducerMark, ProducerStamp } from "../../storage/storage.js";
import { MAX_PRODUCERS } from "../../storage/state.js";
import { refuse, type Refused } from "./outcome.js";

/** A producer that has been silent for this long may be forgotten when a stream has no room for a new one. */
export const PRODUCER_IDLE_MS = 24 * 3600 * 1000;

/** What a stream remembers of its producers. */
export interface ProducerMemory {
  markOf(id: string): ProducerMark | undefined;
  readonly producerCount: number;
  /** When the producer that one more would push out was last heard; `Infinity` when there is none. */
  readonly oldestProducerAtMs: number;
}

/** Whether an append is new (`accept`), a `duplicate`, or refused. */
export type ProducerVerdict =
  { readonly kind: "accept" } | { readonly kind: "duplicate"; readonly mark: ProducerMark } | Refused;

const ACCEPT: ProducerVerdict = { kind: "accept" };

/**
 * Applies the rule of idempotent producers: the sequence numbers of an epoch count up from 0 without a gap, a higher
 * epoch fences lower ones, and a number that was accepted before is a duplicate.
 */
export function judgeProducer(memory: ProducerMemory, stamp: ProducerStamp, nowMs: number): ProducerVerdict {
  const mark = memory.markOf(stamp.id);
  if (mark === undefined) return judgeNewcomer(memory, stamp, nowMs);
  if (stamp.epoch < mark.epoch) {
    return refuse("stale-epoch", { detail: `The epoch is ${mark.epoch} by now.`, producerEpoch: mark.epoch });
  }
  if (stamp.epoch > mark.epoch) {
    return stamp.seq === 0 ? ACCEPT : refuse("epoch-must-start-at-zero", { producerEpoch: mark.epoch });
  }
  if (stamp.seq <= mark.seq) return { kind: "duplicate", mark };
  if (stamp.seq === mark.seq + 1) return ACCEPT;
  return gap(stamp, mark.seq + 1, `Producer-Seq ${mark.seq + 1} comes first.`);
}

function judgeNewcomer(memory: ProducerMemory, stamp: ProducerStamp, nowMs: number): ProducerVerdict {
  if (stamp.seq !== 0) return gap(stamp, 0, "The stream knows no such producer: it begins with Producer-Seq 0.");
  const hasRoom = memory.producerCount < MAX_PRODUCERS || nowMs - memory.oldestProducerAtMs >= PRODUCER_IDLE_MS;
  return hasRoom
    ? ACCEPT
    : refuse("too-many-producers", { detail: `A stream remembers ${MAX_PRODUCERS} active producers.` });
}

function gap({ seq }: ProducerStamp, expectedSeq: number, detail: string): Refused {
  return refuse("producer-gap", { detail, expectedSeq, receivedSeq: seq });
}
