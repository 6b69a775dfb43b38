// Why a verb can't go on: what it prints, and the status that it ends with.

import { oneLine } from "../../../ops/log.js";
import { sameMediaType } from "../../../protocol/content-type.js";
import { EXIT } from "../../command/verb.js";
import type { Answer } from "./http-client.js";

/** Why a verb ends without having done what it was asked. */
export interface Failure {
  readonly kind: "failure";
  /** The exit status. */
  readonly status: number;
  /** For people; empty where there is nothing to say. */
  readonly line: string;
  /** The `code` of the problem document; `null` where there is none. */
  readonly code: string | null;
}

/** The statuses that say that the same request may be answered otherwise a while later. */
const TRANSIENT = new Set([408, 429, 502, 503, 504, 507]);

/** A longer text is a page, or data, and no reason. */
const MAX_REASON_BYTES = 512;

/** A failure of the client itself. */
export function failure(status: number, line: string): Failure {
  return { kind: "failure", status, line, code: null };
}

/** Of a verb that found no stream called `name`: who writes a pattern learns that the verb takes none. */
export function patternRefused(refused: Failure, verb: string, name: string): Failure {
  if (refused.status !== EXIT.missing || !name.includes("*")) return refused;
  return { ...refused, line: `${refused.line}; ${verb} takes one name, and no pattern` };
}

/** Whether it is of what was asked for alone: other requests may be answered well. */
export function isRefused({ status }: Failure): boolean {
  return status === EXIT.refused || status === EXIT.missing || status === EXIT.noRight;
}

/** Whether the same request may be answered otherwise a while later. */
export function isTransient({ status }: Answer): boolean {
  return TRANSIENT.has(status);
}

/** What an answer that refuses says; `about` is what was asked for, like `stream "a"`. */
export function refusal(answer: Answer, about: string): Failure {
  const { code, title, detail: told } = problemOf(answer);
  const plain = plainReason(answer);
  const said = title ?? (plain === null ? wordsOf(answer) : `The server answers with ${answer.status}`);
  // The server speaks of a header, which nobody at a terminal sends.
  const detail =
    code === "credential-missing" ? "see --token-file and --cert-file, or set STREAMDIR_TOKEN" : (told ?? plain);
  const line = oneLine(`${about}: ${said}${detail === null ? "" : `: ${detail}`}${code === null ? "" : ` (${code})`}`);
  return { kind: "failure", status: exitOf(answer.status, code), line, code };
}

interface ProblemWords {
  readonly code: string | null;
  readonly title: string | null;
  readonly detail: string | null;
}

/** What a problem document says. One by a proxy, or none as after HEAD, has no code. */
function problemOf({ body, header }: Answer): ProblemWords {
  const document = header("content-type")?.startsWith("application/problem+json") === true ? parsed(body) : null;
  const member = (name: string): string | null => {
    const value = document?.[name];
    return typeof value === "string" ? value : null;
  };
  return { code: member("code"), title: member("title"), detail: member("detail") };
}

/** The first line of a text, as other servers than streamdir give their reasons; `null` where there is none. */
function plainReason({ body, header }: Answer): string | null {
  if (!sameMediaType(header("content-type") ?? "", "text/plain") || body.length > MAX_REASON_BYTES) return null;
  const line =
    body
      .toString()
      .trim()
      .split(/[\r\n]/, 1)[0] ?? "";
  return line === "" ? null : line;
}

function parsed(body: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body.toString());
    // Every member is looked at before it is used.
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null; // cut short by whoever stands between: the status says enough
  }
}

function exitOf(status: number, code: string | null): number {
  if (status === 404 || (status === 410 && code !== "offset-gone")) return EXIT.missing;
  if (status === 401 || (status === 403 && code !== "stale-epoch") || status === 421) return EXIT.noRight;
  if (TRANSIENT.has(status)) return EXIT.tryAgain;
  return status >= 500 || status < 400 ? EXIT.fault : EXIT.refused;
}

/** How an answer without a body still says that the token which was sent is the reason (RFC 6750, 3.1). */
const TOKEN_REFUSED = /\berror="?invalid_token\b/;

function wordsOf({ status, header }: Answer): string {
  switch (status) {
    case 404:
      return "The server answers with 404, and not why: there is no such stream, or --server or --prefix is wrong";
    case 410:
      return "The stream is gone";
    case 401:
      return TOKEN_REFUSED.test(header("www-authenticate") ?? "")
        ? "The server does not take this token: it is unknown, over or revoked"
        : "The server asks for a token or a certificate: see --token-file and --cert-file";
    case 403:
      return "The token has no right to this";
    case 503:
      return "The server answers with 503, and not why: see its /health";
    default:
      return `The server answers with ${status}`;
  }
}

/** The failure of a verb that is to end: the reason of the signal is its exit status. */
export function stopped(signal: AbortSignal): Failure {
  return failure(Number(signal.reason), "");
}
