import type { ProducerEcho, Refused } from "../../src/stream/rules/outcome.js";
import type { StreamState } from "../../src/storage/storage.js";
import { must } from "./model.js";
import type { Operation } from "./operations.js";
import { positionOf } from "./places.js";

/**
 * What answers that change nothing have said of a stream: where it ends, what a producer has reached, that it is closed.
 * Each came when that was durable, so that no crash takes it back.
 */
export class Citations {
  #tail = 0;
  #closedAt: number | null = null;
  #seq: string | null = null;
  readonly #producers = new Map<string, ProducerEcho>();

  /** The end that was named last, at least. */
  get tail(): number {
    return this.#tail;
  }

  /** It was said to end here, as far as it is durable, and whether for ever. */
  ends(token: string, closed: boolean): void {
    this.#tail = Math.max(this.#tail, positionOf(token));
    if (closed) this.#closedAt = positionOf(token);
  }

  /** A producer was said to have come so far. */
  reached(id: string, mark: ProducerEcho): void {
    const known = this.#producers.get(id);
    if (known === undefined || !isBefore(mark, known)) this.#producers.set(id, mark);
  }

  /** An append was refused for what the stream had. */
  refused({ producer, seq }: Operation, { code, nextOffset, producerEpoch, expectedSeq }: Refused): void {
    if (code === "stream-closed" && nextOffset !== undefined) this.ends(nextOffset, true);
    if (code === "stream-seq-regression" && seq !== null && (this.#seq === null || seq > this.#seq)) this.#seq = seq;
    if (producer === null) return;
    if (producerEpoch !== undefined) this.reached(producer.id, { epoch: producerEpoch, seq: 0 });
    if (expectedSeq !== undefined && expectedSeq > 0) this.reached(producer.id, { epoch: producer.epoch, seq: expectedSeq - 1 });
  }

  /** Compares all of it with what the stream `tag` has. */
  check(tag: string, state: StreamState): void {
    must(state.tail >= this.#tail, () => `${tag}: an answer named its end ${this.#tail}, it ends at ${state.tail}`);
    must(
      this.#closedAt === null || (state.closed && state.tail === this.#closedAt),
      () => `${tag}: an answer said that it was closed at ${this.#closedAt}, it ends at ${state.tail}`,
    );
    must(
      this.#seq === null || (state.lastSeq !== null && state.lastSeq >= this.#seq),
      () => `${tag}: an answer said that it had Stream-Seq ${this.#seq}, it has ${state.lastSeq}`,
    );
    for (const [id, cited] of this.#producers) {
      const mark = state.producers?.get(id);
      must(
        mark !== undefined && !isBefore(mark, cited),
        () => `${tag}: an answer said that producer ${id} was at ${JSON.stringify(cited)}, it is at ${JSON.stringify(mark)}`,
      );
    }
  }
}

function isBefore(mark: ProducerEcho, other: ProducerEcho): boolean {
  return mark.epoch < other.epoch || (mark.epoch === other.epoch && mark.seq < other.seq);
}
