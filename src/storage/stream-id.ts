import { randomUUID } from "node:crypto";

const HEX_DIGITS = 24;

/** What tells the incarnations of a name apart: 24 hexadecimal digits, all but six bits of them random. */
export function newStreamId(): string {
  // Node keeps random bytes at hand for these alone; to ask the system each time would take longer than the rest of a
  // creation.
  return randomUUID().replaceAll("-", "").slice(0, HEX_DIGITS);
}
