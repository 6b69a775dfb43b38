// Reads and writes RFC 3339 timestamps.

import { parseDigits } from "./decimal.js";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** The instants whose UTC form RFC 3339 can write: the years 0000 to 9999. */
const MIN_TIMESTAMP_MS = -62_167_219_200_000;
const MAX_TIMESTAMP_MS = 253_402_300_799_999;

const DASH = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const COLON = 0x3a;
const LOWER_CASE = 0x20;
const LOWER_T = 0x74;
const LOWER_Z = 0x7a;

/** `YYYY-MM-DDThh:mm:ss`, which every timestamp begins with. */
const PREFIX_LENGTH = 19;

/**
 * Reads an RFC 3339 timestamp (`Stream-Expires-At`; docs/api.md, Create a stream) as milliseconds since 1970; `null`
 * for anything else, for dates that do not exist, and for instants outside of the UTC years 0000 to 9999. Digits beyond
 * milliseconds are cut off. A leap second (23:59:60 UTC) is the second that follows it.
 */
export function parseTimestamp(text: string): number | null {
  const dayMs = parseDate(text);
  const timeMs = parseTime(text);
  const zoneAt = endOfFraction(text);
  if (dayMs === null || timeMs === null || zoneAt === null) return null;
  const offsetMs = parseZone(text, zoneAt);
  if (offsetMs === null) return null;
  const secondMs = dayMs + timeMs - offsetMs;
  if (isLeapSecond(text) && secondMs % DAY_MS !== 0) return null;
  const ms = secondMs + fractionMs(text, zoneAt);
  return ms >= MIN_TIMESTAMP_MS && ms <= MAX_TIMESTAMP_MS ? ms : null;
}

/** Writes Unix milliseconds in UTC, with three digits of fraction; beyond the years 0000 to 9999, their end. */
export function formatTimestamp(ms: number): string {
  return new Date(Math.max(MIN_TIMESTAMP_MS, Math.min(MAX_TIMESTAMP_MS, ms))).toISOString();
}

/** The midnight (UTC) that begins the date at the start of `text`. */
function parseDate(text: string): number | null {
  if (text.charCodeAt(4) !== DASH || text.charCodeAt(7) !== DASH) return null;
  const year = parseDigits(text, 0, 4);
  const month = digitsWithin(text, 5, 1, 12);
  if (year === null || month === null) return null;
  const day = digitsWithin(text, 8, 1, daysInMonth(year, month));
  if (day === null) return null;
  // The calendar repeats after 400 years, and Date.UTC takes years below 100 for those of the last century.
  return Date.UTC(year + 400, month - 1, day) - 400 * 365.2425 * DAY_MS;
}

/** The milliseconds from midnight to the second in `text`; a leap second gives the next one. */
function parseTime(text: string): number | null {
  if ((text.charCodeAt(10) | LOWER_CASE) !== LOWER_T) return null;
  if (text.charCodeAt(13) !== COLON || text.charCodeAt(16) !== COLON) return null;
  const hour = digitsWithin(text, 11, 0, 23);
  const minute = digitsWithin(text, 14, 0, 59);
  const second = digitsWithin(text, 17, 0, 60);
  if (hour === null || minute === null || second === null) return null;
  return (hour * 60 + minute) * MINUTE_MS + second * 1000;
}

function isLeapSecond(text: string): boolean {
  return text.startsWith("60", PREFIX_LENGTH - 2);
}

/** Where the zone begins: after the seconds and their fraction, which needs at least one digit. */
function endOfFraction(text: string): number | null {
  if (text.charCodeAt(PREFIX_LENGTH) !== DOT) return PREFIX_LENGTH;
  let at = PREFIX_LENGTH + 1;
  while (parseDigits(text, at, at + 1) !== null) at++;
  return at === PREFIX_LENGTH + 1 ? null : at;
}

function fractionMs(text: string, zoneAt: number): number {
  const digits = text.slice(PREFIX_LENGTH + 1, Math.min(zoneAt, PREFIX_LENGTH + 4));
  return Number(digits.padEnd(3, "0"));
}

/** The zone's milliseconds east of UTC; the zone must end `text`. */
function parseZone(text: string, at: number): number | null {
  if (text.length === at + 1) return (text.charCodeAt(at) | LOWER_CASE) === LOWER_Z ? 0 : null;
  const sign = text.charCodeAt(at);
  if (text.length !== at + 6 || (sign !== PLUS && sign !== DASH) || text.charCodeAt(at + 3) !== COLON) return null;
  const hours = digitsWithin(text, at + 1, 0, 23);
  const minutes = digitsWithin(text, at + 4, 0, 59);
  if (hours === null || minutes === null) return null;
  const offsetMs = (hours * 60 + minutes) * MINUTE_MS;
  return sign === PLUS ? offsetMs : -offsetMs;
}

/** The two digits at `at`, if they are a number from `min` to `max`. */
function digitsWithin(text: string, at: number, min: number, max: number): number | null {
  const value = parseDigits(text, at, at + 2);
  return value !== null && value >= min && value <= max ? value : null;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return isLeapYear(year) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}
