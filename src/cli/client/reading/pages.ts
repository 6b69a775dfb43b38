// Reads a stream answer by answer.

import { EXIT } from "../../command/verb.js";
import { failure, refusal, type Failure } from "../remote/failure.js";
import type { Insistence } from "../remote/remote-server.js";
import { nextOffsetOf, streamCalled, type Session } from "../session/session.js";

/** One answer to a read. */
export interface ReadPage {
  readonly kind: "page";
  /** Empty in an answer of a long-poll that waited for nothing. */
  readonly body: Buffer;
  /** `null` where the answer has none, as it has nothing else. */
  readonly contentType: string | null;
  /** Where to go on. */
  readonly next: string;
  readonly cursor: string | null;
  readonly isUpToDate: boolean;
  readonly isClosed: boolean;
  /** Whether caches may compare it: never where the server chose the place. */
  readonly hasEtag: boolean;
}

/** What was at the offset is no longer there; `earliest` is what is left, `null` where the answer does not say. */
export interface GonePage {
  readonly kind: "gone";
  readonly earliest: string | null;
  readonly failure: Failure;
}

/** Reads once. `query` has the place, and how to wait there. */
export async function readPage(
  session: Session,
  name: string,
  query: Readonly<Record<string, string>>,
  insistence: Insistence = {},
): Promise<ReadPage | GonePage | Failure> {
  const target = session.server.target(name, query);
  const answer = await session.server.askStream({ method: "GET", target }, insistence);
  if (answer.kind === "failure") return answer;
  const { status, body } = answer;
  if (status !== 200 && status !== 204) {
    const refused = refusal(answer, streamCalled(name));
    const earliest = answer.header("stream-earliest-offset");
    return refused.code === "offset-gone" ? { kind: "gone", earliest, failure: refused } : refused;
  }
  const next = nextOffsetOf(answer);
  const isUpToDate = status === 204 || answer.header("stream-up-to-date") === "true";
  if (!isUpToDate && next === query["offset"])
    return failure(EXIT.fault, `${streamCalled(name)}: the server says that there is more, and has none at ${next}`);
  return {
    kind: "page",
    body,
    contentType: answer.header("content-type"),
    next,
    cursor: answer.header("stream-cursor"),
    isUpToDate,
    isClosed: answer.header("stream-closed") === "true",
    hasEtag: answer.header("etag") !== null,
  };
}

/** What a reader is told that does not go on by itself. */
export function goneFor({ earliest, failure: refused }: GonePage): Failure {
  return earliest === null
    ? refused
    : { ...refused, line: `${refused.line}; the earliest that is left is ${earliest}` };
}

/** What a reader says of each answer. */
export type Appetite = "more" | "enough";

/** Reads from an offset to the tail, and gives each answer to `take` until that wants no more. */
export async function readToTail(
  session: Session,
  name: string,
  from: string,
  take: (page: ReadPage) => Appetite | Promise<Appetite>,
): Promise<Failure | null> {
  for (let offset = from; ;) {
    const page = await readPage(session, name, { offset });
    if (page.kind === "gone") return goneFor(page);
    if (page.kind === "failure") return page;
    if ((await take(page)) === "enough" || page.isUpToDate) return null;
    offset = page.next;
  }
}
