// Reads and writes offset tokens.

import { crc32 } from "node:zlib";
import { parseDigits } from "./decimal.js";

/** A byte of a part of a stream, as a token names it. */
export interface TokenPlace {
  /** Position of the part's first byte. */
  readonly partStart: number;
  /** Bytes after the part's start. */
  readonly byteInPart: number;
  /** The check of the incarnation that wrote the part, or one more (see {@link isCheckOf}). */
  readonly check: number;
}

/** What an offset token asks for: the start of the stream, its current tail, or a byte of a part. */
export type ParsedOffset =
  { readonly kind: "start" } | { readonly kind: "now" } | ({ readonly kind: "at" } & TokenPlace);

/** Where a read is asked to begin: at an offset, before the last messages, or at the first append since a time. */
export type ReadStart =
  ParsedOffset | { readonly kind: "last"; readonly count: number } | { readonly kind: "since"; readonly atMs: number };

/** Whether a read begins at the same place whenever it is asked for. */
export function isFixed({ kind }: ReadStart): boolean {
  return kind === "start" || kind === "at";
}

const START: ParsedOffset = { kind: "start" };
const NOW: ParsedOffset = { kind: "now" };

const FIELD_DIGITS = 16;
const TOKEN_LENGTH = 2 * FIELD_DIGITS + 1;
const UNDERSCORE = 0x5f;
const ZEROS = "0".repeat(FIELD_DIGITS);
/** The number of values of the check, the last digits of a token. The highest only occurs as a check plus one. */
const CHECKS = 1_000_000;

/** The token of the start: the same in every stream, as nothing before it could be another incarnation's. */
export const START_TOKEN = `${ZEROS}_${ZEROS}`;

/** Most bytes of a part: together with a check they are still exact numbers. */
export const MAX_PART_BYTES = 4 * 1024 ** 3;

/**
 * Reads an offset token (docs/api.md, Concepts): `-1`, `now`, or `<16 digits>_<16 digits>` with both numbers at most
 * 2^53-1. Anything else is `null`. Whether the stream has such a place is for the stream to say.
 */
export function parseOffset(text: string): ParsedOffset | null {
  if (text === "-1") return START;
  if (text === "now") return NOW;
  if (text.length !== TOKEN_LENGTH || text.charCodeAt(FIELD_DIGITS) !== UNDERSCORE) return null;
  const partStart = parseDigits(text, 0, FIELD_DIGITS);
  const place = parseDigits(text, FIELD_DIGITS + 1, TOKEN_LENGTH);
  if (partStart === null || place === null) return null;
  const check = place % CHECKS;
  return { kind: "at", partStart, byteInPart: (place - check) / CHECKS, check };
}

/**
 * Writes the token of a place: the position of the part's first byte, the byte within it (at most {@link
 * MAX_PART_BYTES}), and the check of the incarnation that wrote it. Tokens of one stream sort as text in the order of
 * their places.
 */
export function formatOffset(partStart: number, byteInPart: number, check: number): string {
  return partStart === 0 && byteInPart === 0 ? START_TOKEN : formatCheckedOffset(partStart, byteInPart, check);
}

/** As {@link formatOffset}, but the start has a check, too: no former stream of a name had the same token. */
export function formatCheckedOffset(partStart: number, byteInPart: number, check: number): string {
  return `${padded(partStart)}_${padded(byteInPart * CHECKS + check)}`;
}

/** The check in the tokens of an incarnation: a number from 0 to 999,998 derived from its id. */
export function checkOf(incarnation: string): number {
  return crc32(incarnation) % (CHECKS - 1);
}

/** Whether a token's check is an incarnation's. Some clients add 1 to get past it: that is the same place. */
export function isCheckOf(check: number, incarnationCheck: number): boolean {
  return check === incarnationCheck || check === incarnationCheck + 1;
}

/** Whether a token is that of the start, or one more. */
export function isStart({ partStart, byteInPart, check }: TokenPlace): boolean {
  return partStart === 0 && byteInPart === 0 && isCheckOf(check, 0);
}

function padded(value: number): string {
  const digits = String(value);
  return ZEROS.slice(digits.length) + digits;
}
