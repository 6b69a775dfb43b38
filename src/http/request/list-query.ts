// Reads the query of a request for the list of streams.

import { faultOfPattern } from "../../auth/rights/pattern.js";
import { parseDecimal } from "../../protocol/decimal.js";
import { MAX_NAME_BYTES } from "../../protocol/names/stream-name.js";
import { isProblem, problem, type Problem } from "../encoding/problems.js";
import { decodeQueryText } from "./query.js";

/** What a request for the list asks for (docs/api.md, List). */
export interface ListQuery {
  /** What names begin with. */
  readonly prefix: string;
  /** The pattern of names; `null` for all. */
  readonly match: string | null;
  /** The page begins after this name; empty for the first. */
  readonly after: string;
  /** Most streams of a page. */
  readonly limit: number;
  readonly live: boolean;
}

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;
/** Each costs time for each name that is looked at. */
const MAX_ASTERISKS = 16;

const PARAMETERS: readonly string[] = ["prefix", "match", "after", "limit", "live"];

/** Reads a query without its `?`; ignores parameters that the list does not have. */
export function parseListQuery(query: string): ListQuery | Problem {
  const given = readParameters(query, PARAMETERS);
  return isProblem(given) ? given : interpret(given);
}

/** The `known` parameters of a query without its `?`, decoded; none may come twice, or be longer than a name. */
export function readParameters(query: string, known: readonly string[]): ReadonlyMap<string, string> | Problem {
  const given = new Map<string, string>();
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    const key = decodeQueryText(equals < 0 ? pair : pair.slice(0, equals));
    if (key === null || !known.includes(key)) continue;
    const value = decodeQueryText(equals < 0 ? "" : pair.slice(equals + 1));
    if (value === null) return invalid(`The parameter ${key} has an invalid percent-encoding.`);
    if (given.has(key)) return invalid(`The parameter ${key} came more than once.`);
    if (Buffer.byteLength(value) > MAX_NAME_BYTES) return invalid(`The parameter ${key} is longer than any name.`);
    given.set(key, value);
  }
  return given;
}

function interpret(given: ReadonlyMap<string, string>): ListQuery | Problem {
  const match = given.get("match") ?? null;
  const fault = match === null ? null : faultOfPattern(match, false);
  if (fault !== null) return invalid(`The parameter match ${fault}.`);
  if (match !== null && match.split("*").length - 1 > MAX_ASTERISKS)
    return invalid(`The parameter match has at most ${MAX_ASTERISKS} asterisks.`);
  const limitText = given.get("limit");
  const limit = limitText === undefined ? DEFAULT_LIMIT : (parseDecimal(limitText) ?? 0);
  if (limit < 1 || limit > MAX_LIMIT) return invalid(`The parameter limit is a number from 1 to ${MAX_LIMIT}.`);
  const live = given.get("live");
  if (live !== undefined && live !== "sse") return invalid("The parameter live is sse.");
  return { prefix: given.get("prefix") ?? "", match, after: given.get("after") ?? "", limit, live: live === "sse" };
}

function invalid(detail: string): Problem {
  return problem("invalid-query", { detail });
}
