// Where an append of an input goes on after it was cut off, as `--resume` takes it.

import type { ProducerPlace } from "./producer.js";

/** What a run has to know to go on exactly where another ended. */
export interface ResumeMark extends ProducerPlace {
  /** Bytes of the input that are stored. */
  readonly at: number;
  /** Bytes that were sent last, and may be stored: sent again as they were, they are stored once. 0 for none. */
  readonly length: number;
}

/** A mark as text. */
export function formatMark({ id, epoch, seq, at, length }: ResumeMark): string {
  return [id, epoch, seq, at, length].join(":");
}

/** The mark that a text is; `null` where it is none. */
export function parseMark(text: string): ResumeMark | null {
  const [, id = "", ...numbers] = /^([\w-]{1,64}):(\d{1,15}):(\d{1,15}):(\d{1,15}):(\d{1,15})$/.exec(text) ?? [];
  const [epoch = 0, seq = 0, at = 0, length = 0] = numbers.map(Number);
  return id === "" ? null : { id, epoch, seq, at, length };
}
