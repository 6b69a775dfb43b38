// The log: levels, formats, one line for each message.

import { systemClock } from "./clock.js";
import type { Clock } from "./clock.js";

/** Severity, least first. */
export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
/** The least severe message that a log keeps; `silent` keeps none. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Named values that go with a message. */
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** The log of a server. */
export interface Log {
  /** Whether it keeps debug messages. Without it there are none about single requests and batches. */
  readonly isDebug?: boolean;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** The options of {@link createLog}. */
export interface LogOptions {
  readonly level: LogLevel;
  /** `text`: `TIME LEVEL message key=value`; `json`: an object with `time`, `level`, `msg` and the fields. */
  readonly format: "text" | "json";
  /** Writes one line, without its line feed. */
  readonly write: (line: string) => void;
  readonly clock?: Pick<Clock, "nowMs">;
}

interface Line {
  readonly time: string;
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

/** Creates a log that writes each message as one line, whatever its text and values contain. */
export function createLog({ level, format, write, clock = systemClock() }: LogOptions): Log {
  const encode = format === "json" ? jsonLine : textLine;
  const at = (severity: LogLevel): Log["info"] => {
    if (LOG_LEVELS.indexOf(severity) < LOG_LEVELS.indexOf(level)) return () => {};
    return (message, fields = {}) => {
      write(encode({ time: new Date(clock.nowMs()).toISOString(), level: severity, message, fields }));
    };
  };
  return { isDebug: level === "debug", debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** The characters that break a line, move a cursor or can't be seen. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** Those of them that JSON has in strings only. */
const HIDDEN_IN_STRINGS = new RegExp(`(?![\\t\\n\\r])${HIDDEN.source}`, "gu");

/** `text` with each character that breaks a line, moves a cursor or can't be seen written as `\uXXXX`. */
export function oneLine(text: string): string {
  return text.replace(HIDDEN, escapeUnits);
}

/** A value as JSON on one line, with the escapes of {@link oneLine}: it reads back the same. */
export function visibleJson(value: unknown): string {
  return oneLine(JSON.stringify(value));
}

/** JSON as somebody wrote it, with the escapes of {@link oneLine} in its strings alone: it reads back the same. */
export function visibleStrings(json: string): string {
  // Most has none, and ends at a search that is several times as fast.
  return /[\x7f-\uffff]/.test(json) ? json.replace(HIDDEN_IN_STRINGS, escapeUnits) : json;
}

function escapeUnits(character: string): string {
  return Array.from({ length: character.length }, (_, index) => {
    return `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
  }).join("");
}

function jsonLine({ time, level, message, fields }: Line): string {
  const head = { time, level, msg: message };
  // The head goes first for the reader, and again last so that no field overrides it.
  return visibleJson({ ...head, ...fields, ...head });
}

function textLine({ time, level, message, fields }: Line): string {
  const pairs = Object.entries(fields).map(([name, value]) => ` ${oneLine(name)}=${textValue(value)}`);
  return `${time} ${level.padEnd(5)} ${oneLine(message)}${pairs.join("")}`;
}

function textValue(value: LogFields[string]): string {
  const text = String(value);
  const isPlain = /^[^\s"=\\\p{C}]+$/u.test(text);
  return isPlain ? text : visibleJson(text);
}
