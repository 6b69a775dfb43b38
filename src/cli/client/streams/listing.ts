// The server's list of streams (`GET {prefix}__ds/streams`).

import { EXIT } from "../../command/verb.js";
import { failure, refusal, type Failure } from "../remote/failure.js";
import type { Session } from "../session/session.js";

/** A stream as the list has it. Members that the server does not say are `null`. */
export interface ListedStream {
  readonly name: string;
  readonly contentType: string;
  readonly closed: boolean;
  readonly nextOffset: string;
  readonly earliestOffset: string | null;
  readonly bytes: number | null;
  readonly createdAt: string | null;
  readonly lastAppendAt: string | null;
  readonly ttlSeconds: number | null;
  readonly expiresAt: string | null;
  readonly isFork: boolean;
  readonly forkedFrom: string | null;
  readonly liveReaders: number | null;
  readonly producers: number | null;
  /** What the caller may do with it. */
  readonly may: readonly string[] | null;
}

/** Which streams: those that `match` a pattern, or whose names begin with `prefix`. */
export type Wanted = { readonly match: string } | { readonly prefix: string };

/** One page; `next` is the `after` of the page that follows, `null` behind the last. */
interface ListPage {
  readonly kind: "list";
  readonly streams: readonly ListedStream[];
  readonly next: string | null;
}

const PAGE_STREAMS = 1000;
/** No stream has this name: it is reserved. */
const LIST = "__ds/streams";
/** The code of the failure where a server has no list. */
const NO_LIST = "no-list";

/** What a word of a command line asks for: a name, a pattern, or with a `/` at its end all below it. */
export function wantedBy(word: string): Wanted {
  if (word === "") return { prefix: "" };
  return word.endsWith("/") ? { prefix: word } : { match: word };
}

/** Gives each page to `take`, in the order of names, until that wants no more. */
export async function listStreams(
  session: Session,
  wanted: Wanted,
  take: (streams: readonly ListedStream[]) => Promise<"more" | "enough">,
): Promise<Failure | null> {
  for (let after: string | null = ""; after !== null;) {
    const page: ListPage | Failure = await readList(session, wanted, after);
    if (page.kind === "failure") return page;
    if ((await take(page.streams)) === "enough") return null;
    after = page.next;
  }
  return null;
}

/** One stream as the list has it, or `null` where the list can't be asked or lacks it. */
export async function lookUp(session: Session, name: string): Promise<ListedStream | Failure | null> {
  // A name may have asterisks, which a pattern would take for something else.
  const page = await readList(session, { prefix: name }, "", 1);
  if (page.kind === "list") return page.streams.find((stream) => stream.name === name) ?? null;
  return isRefusal(page) ? null : page;
}

/** The list is not there, or not for the caller: what is asked of the stream itself says the rest. */
function isRefusal({ status, code }: Failure): boolean {
  return code === NO_LIST || status === EXIT.refused || status === EXIT.missing || status === EXIT.noRight;
}

async function readList(
  session: Session,
  wanted: Wanted,
  after: string,
  limit = PAGE_STREAMS,
): Promise<ListPage | Failure> {
  const query = { ...wanted, limit: String(limit), ...(after === "" ? {} : { after }) };
  const target = session.server.target(LIST, query);
  const answer = await session.server.ask({ method: "GET", target });
  if (answer.kind === "failure") return answer;
  const refused = answer.status === 200 ? null : refusal(answer, "the list of streams");
  const hasNone = refused?.code === "invalid-name" || answer.status === 404 || answer.status === 405;
  const place = `${session.serverName} below ${session.server.target("")}`;
  if (hasNone) return { ...failure(EXIT.unreachable, `there is no list of streams at ${place}`), code: NO_LIST };
  return refused ?? pageOf(answer.body) ?? failure(EXIT.fault, "the list of streams is not the JSON it should be");
}

function pageOf(body: Buffer): ListPage | null {
  try {
    const page: unknown = JSON.parse(body.toString());
    if (typeof page !== "object" || page === null || !("streams" in page) || !Array.isArray(page.streams)) return null;
    const next = "next" in page && typeof page.next === "string" ? page.next : null;
    const streams = page.streams.map((stream: unknown) => listed(stream));
    const known = streams.filter((stream) => stream !== null);
    return known.length === streams.length ? { kind: "list", streams: known, next } : null;
  } catch {
    return null; // whoever asked says that it is no JSON
  }
}

function listed(value: unknown): ListedStream | null {
  if (typeof value !== "object" || value === null) return null;
  const members: Readonly<Record<string, unknown>> = { ...value };
  const text = (name: string): string | null => {
    const member = members[name];
    return isPlain(member) ? member : null;
  };
  const number = (name: string): number | null => {
    const member = members[name];
    return typeof member === "number" ? member : null;
  };
  const { may } = members;
  const [name, contentType, nextOffset] = [text("name"), text("contentType"), text("nextOffset")];
  if (name === null || contentType === null || nextOffset === null) return null;
  return {
    name,
    contentType,
    closed: members["closed"] === true,
    nextOffset,
    earliestOffset: text("earliestOffset"),
    bytes: number("bytes"),
    createdAt: text("createdAt"),
    lastAppendAt: text("lastAppendAt"),
    ttlSeconds: number("ttlSeconds"),
    expiresAt: text("expiresAt"),
    isFork: members["isFork"] === true,
    forkedFrom: text("forkedFrom"),
    liveReaders: number("liveReaders"),
    producers: number("producers"),
    may: Array.isArray(may) ? may.filter(isPlain) : null,
  };
}

/** No server of ours sends control characters, which would change what a terminal shows. */
function isPlain(member: unknown): member is string {
  return typeof member === "string" && !/\p{Cc}/u.test(member);
}
