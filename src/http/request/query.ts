import { parseOffset, type ParsedOffset } from "../../protocol/offset.js";
import { problem, type Problem } from "../encoding/problems.js";

/** What a GET asks for (docs/api.md, Read). `null` is an absent parameter. */
export interface ReadQuery {
  readonly offset: ParsedOffset | null;
  readonly live: "long-poll" | "sse" | null;
  readonly cursor: string | null;
}

/** What a live read asks for. */
export interface LiveQuery {
  readonly offset: ParsedOffset;
  /** The client's own cursor; `null` when it sent none. */
  readonly cursor: string | null;
}

const NO_PARAMETERS: ReadQuery = { offset: null, live: null, cursor: null };

/** The parameters as they were sent, decoded. */
interface Parameters {
  offset: string | null;
  live: string | null;
  cursor: string | null;
}

/** Reads a query without its `?`; ignores parameters that the protocol does not have. */
export function parseReadQuery(query: string): ReadQuery | Problem {
  if (query === "") return NO_PARAMETERS;
  const parameters: Parameters = { offset: null, live: null, cursor: null };
  for (let start = 0; start <= query.length;) {
    const ampersand = query.indexOf("&", start);
    const end = ampersand === -1 ? query.length : ampersand;
    const refusal = readPair(parameters, query.slice(start, end));
    if (refusal !== null) return refusal;
    start = end + 1;
  }
  return interpret(parameters);
}

function readPair(parameters: Parameters, pair: string): Problem | null {
  const equals = pair.indexOf("=");
  const key = decodeQueryText(equals === -1 ? pair : pair.slice(0, equals));
  if (key !== "offset" && key !== "live" && key !== "cursor") return null;
  if (parameters[key] !== null)
    return problem("invalid-query", { detail: `The parameter ${key} came more than once.` });
  const value = decodeQueryText(equals === -1 ? "" : pair.slice(equals + 1));
  if (value === null)
    return problem("invalid-query", { detail: `The parameter ${key} has an invalid percent-encoding.` });
  parameters[key] = value;
  return null;
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

function interpret({ offset, live, cursor }: Parameters): ReadQuery | Problem {
  if (live !== null && live !== "long-poll" && live !== "sse") {
    return problem("invalid-query", { detail: "The parameter live is long-poll or sse." });
  }
  if (offset === null) return { offset: null, live, cursor };
  const parsed = parseOffset(offset);
  if (parsed === null) return problem("invalid-offset", { detail: "An offset is -1, now, or a token of this server." });
  return { offset: parsed, live, cursor };
}
