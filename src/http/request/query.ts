import { parseDecimal } from "../../protocol/decimal.js";
import { parseOffset, type ReadStart } from "../../protocol/offset.js";
import { parseTimestamp } from "../../protocol/timestamp.js";
import { problem, type Problem } from "../encoding/problems.js";

/** What a GET asks for (docs/api.md, Read). `null` is an absent parameter. */
export interface ReadQuery {
  readonly offset: ReadStart | null;
  readonly live: "long-poll" | "sse" | null;
  readonly cursor: string | null;
}

/** What a live read asks for. */
export interface LiveQuery {
  readonly offset: ReadStart;
  /** The client's own cursor; `null` when it sent none. */
  readonly cursor: string | null;
}

const NO_PARAMETERS: ReadQuery = { offset: null, live: null, cursor: null };

/** The parameters as they were sent, decoded. */
interface Parameters {
  offset: string | null;
  live: string | null;
  cursor: string | null;
  last: string | null;
  since: string | null;
}

/** Most messages, or appends, that `last` asks for. */
const MAX_LAST = 1_000_000;

/**
 * Reads a query without its `?`; ignores parameters that the protocol does not have. A time after `nowMs` is refused.
 */
export function parseReadQuery(query: string, nowMs: number): ReadQuery | Problem {
  if (query === "") return NO_PARAMETERS;
  const parameters: Parameters = { offset: null, live: null, cursor: null, last: null, since: null };
  for (let start = 0; start <= query.length;) {
    const ampersand = query.indexOf("&", start);
    const end = ampersand === -1 ? query.length : ampersand;
    const refusal = readPair(parameters, query.slice(start, end));
    if (refusal !== null) return refusal;
    start = end + 1;
  }
  return interpret(parameters, nowMs);
}

function readPair(parameters: Parameters, pair: string): Problem | null {
  const equals = pair.indexOf("=");
  const key = decodeQueryText(equals === -1 ? pair : pair.slice(0, equals));
  if (!isKnown(key)) return null;
  if (parameters[key] !== null)
    return problem("invalid-query", { detail: `The parameter ${key} came more than once.` });
  const value = decodeQueryText(equals === -1 ? "" : pair.slice(equals + 1));
  if (value === null)
    return problem("invalid-query", { detail: `The parameter ${key} has an invalid percent-encoding.` });
  parameters[key] = value;
  return null;
}

function isKnown(key: string | null): key is keyof Parameters {
  return key === "offset" || key === "live" || key === "cursor" || key === "last" || key === "since";
}

/** A key or a value of a query in plain text; `null` when its percent-encoding is not valid. */
export function decodeQueryText(text: string): string | null {
  if (!text.includes("%") && !text.includes("+")) return text;
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return null; // the only thing that decodeURIComponent throws for
  }
}

function interpret(parameters: Parameters, nowMs: number): ReadQuery | Problem {
  const { live, cursor } = parameters;
  if (live !== null && live !== "long-poll" && live !== "sse")
    return invalid("The parameter live is long-poll or sse.");
  const offset = startOf(parameters, nowMs);
  return offset !== null && offset.kind === "refused" ? offset : { offset, live, cursor };
}

function startOf({ offset, last, since }: Parameters, nowMs: number): ReadStart | Problem | null {
  if ([offset, last, since].filter((value) => value !== null).length > 1)
    return invalid("Only one of the parameters offset, last and since says where a read begins.");
  if (last !== null) return lastOf(last);
  if (since !== null) return sinceOf(since, nowMs);
  if (offset === null) return null;
  return (
    parseOffset(offset) ?? problem("invalid-offset", { detail: "An offset is -1, now, or a token of this server." })
  );
}

function lastOf(text: string): ReadStart | Problem {
  const count = parseDecimal(text) ?? 0;
  if (count < 1 || count > MAX_LAST) return invalid(`The parameter last is a number from 1 to ${MAX_LAST}.`);
  return { kind: "last", count };
}

function sinceOf(text: string, nowMs: number): ReadStart | Problem {
  const atMs = parseTimestamp(text);
  if (atMs === null) return invalid("The parameter since is a time like 2026-01-31T12:00:00Z.");
  return atMs > nowMs ? invalid("The parameter since is in the future.") : { kind: "since", atMs };
}

function invalid(detail: string): Problem {
  return problem("invalid-query", { detail });
}
