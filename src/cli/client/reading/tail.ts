// The verb `tail`: the end of a stream, and with `-f` what comes after it.

import { parseTimestamp } from "../../../protocol/timestamp.js";
import { isJsonContentType, isTextual } from "../../../protocol/content-type.js";
import { parseDuration, quoted } from "../../command/value.js";
import { EXIT } from "../../command/verb.js";
import { failure, type Failure } from "../remote/failure.js";
import { clientTask, flag, NAME, streamCalled, type Session } from "../session/session.js";
import { endOf } from "./cat.js";
import { asArray, lastLines, messagesOf } from "./messages.js";
import { goneFor, readPage, readToTail, type ReadPage } from "./pages.js";
import { Printer } from "./printer.js";

const DEFAULT_COUNT = 10;
const MAX_COUNT = 1_000_000;
/** The last lines are looked for again when so much more than they have has come. */
const SPARE_BYTES = 4 * 1024 * 1024;
/** More than the longest answer is not kept. */
const MAX_LINES_BYTES = 256 * 1024 * 1024;

/** The row of the table of verbs. */
export const TAIL = clientTask({
  name: "tail",
  summary: "print the end of a stream, and with -f follow it",
  words: [NAME],
  flags: [
    flag("lines", "integer", "N", "so many messages, lines of text, or appends of bytes before the tail; 10", "n"),
    flag("since", "text", "TIME", "begin at what was appended since: 1h, or 2026-01-31T12:00:00Z"),
    flag("from", "text", "OFFSET", "begin at this offset, as an answer or --json has given it"),
    flag("follow", "flag", "", "go on with what is appended, until the stream is closed", "f"),
  ],
  run: tail,
});

/** The query of the first read. */
type Place = { readonly offset: string } | { readonly last: string } | { readonly since: string };

async function tail(session: Session): Promise<Failure | null> {
  const { out } = session;
  const name = session.name(0);
  if (typeof name !== "string") return name;
  const place = placeOf(session);
  if ("kind" in place) return place;
  const printer = new Printer({ out, asJson: session.asJson, limit: null });
  const found = await firstPage(session, name, place);
  const first = found.kind === "failure" ? await awaited(session, name, found) : found;
  return first.kind === "failure" ? first : follow(session, name, printer, first);
}

/** The beginning of a stream that was not there when it was to be followed: all of it is new. */
async function awaited(session: Session, name: string, missing: Failure): Promise<ReadPage | Failure> {
  if (missing.code !== "stream-not-found" || !session.given.has("follow")) return missing;
  if (!session.given.has("wait")) return { ...missing, line: `${missing.line}; --wait 1m waits for it` };
  const page = await readPage(session, name, { offset: "-1" }, { awaitsStream: true });
  if (page.kind === "gone") return goneFor(page);
  return page.kind === "failure" && page.code === missing.code ? missing : page;
}

function placeOf({ given, clock }: Session): Place | Failure {
  const wrong = (line: string): Failure => failure(EXIT.usage, line);
  const [count, since, from] = [given.number("lines"), given.text("since"), given.text("from")];
  if ([count, since, from].filter((value) => value !== null).length > 1)
    return wrong("only one of --lines, --since and --from can say where to begin");
  if (from !== null) return { offset: from };
  if (since !== null) {
    const agoMs = parseDuration(since);
    if (agoMs !== null) return { since: new Date(Math.max(0, clock.nowMs() - agoMs)).toISOString() };
    return parseTimestamp(since) === null
      ? wrong(`--since must be like 1h or 2026-01-31T12:00:00Z, not ${quoted(since)}`)
      : { since };
  }
  if (count === 0) return { offset: "now" };
  if (count !== null && count > MAX_COUNT) return wrong(`--lines must be at most ${MAX_COUNT}`);
  return { last: String(count ?? DEFAULT_COUNT) };
}

async function firstPage(session: Session, name: string, place: Place): Promise<ReadPage | Failure> {
  const page = await readPage(session, name, place);
  if (page.kind === "gone") return goneFor(page);
  if (page.kind === "page" && "last" in place && holdsLines(page.contentType ?? ""))
    return lastLinesFrom(session, name, page, Number(place.last));
  // Only what the server chose has no ETag: with one, the server knows no such places and began at the start.
  if (page.kind === "failure" || !page.hasEtag || "offset" in place) return page;
  if ("since" in place) return failure(EXIT.unreachable, `${session.serverName} knows no --since`);
  return lastOf(session, name, Number(place.last));
}

/** Whether people count what it holds in lines: other bytes are taken append by append. */
function holdsLines(contentType: string): boolean {
  return isTextual(contentType) && !isJsonContentType(contentType);
}

/** The last lines from a page on, to the tail, as one page. They may begin before it where appends end within lines. */
async function lastLinesFrom(
  session: Session,
  name: string,
  first: ReadPage,
  count: number,
): Promise<ReadPage | Failure> {
  let parts = [first.body];
  let [size, sizeToCut] = [first.body.length, SPARE_BYTES];
  let page = first;
  while (!page.isUpToDate) {
    const next = await nextPage(session, name, { offset: page.next }, session.given.has("follow"));
    if (next.kind === "failure") return next;
    page = next;
    parts.push(page.body);
    size += page.body.length;
    if (size <= sizeToCut) continue;
    // A copy, so that what was cut off is freed.
    const kept = Buffer.from(lastLines(Buffer.concat(parts), count));
    if (kept.length > MAX_LINES_BYTES) return tooLong(name, count);
    [parts, size, sizeToCut] = [[kept], kept.length, 2 * kept.length + SPARE_BYTES];
  }
  return { ...page, body: lastLines(Buffer.concat(parts), count) };
}

function tooLong(name: string, count: number): Failure {
  const line = `${streamCalled(name)}: its last ${count} lines are too long to be kept: ask for fewer with -n`;
  return failure(EXIT.refused, line);
}

/** The last messages, or answers of a stream of bytes, by reading all that is before them. */
async function lastOf(session: Session, name: string, count: number): Promise<ReadPage | Failure> {
  let kept: Buffer[] = [];
  let isJson = false;
  let latest: ReadPage | null = null;
  const failed = await readToTail(session, name, "-1", async (page) => {
    latest = page;
    isJson = isJsonContentType(page.contentType ?? "");
    kept = [...kept, ...(isJson ? (messagesOf(page.body) ?? []) : [page.body])].slice(-count);
    return Promise.resolve("more");
  });
  if (failed !== null) return failed;
  // The compiler does not see that the callback has run.
  const page = latest as ReadPage | null;
  if (page === null) return failure(EXIT.fault, `${streamCalled(name)}: nothing was read`);
  return { ...page, body: isJson ? asArray(kept) : Buffer.concat(kept) };
}

/** Prints what was read, and reads on: to the tail, or for ever. */
async function follow(session: Session, name: string, printer: Printer, first: ReadPage): Promise<Failure | null> {
  const isFollowing = session.given.has("follow");
  for (let page = first; ;) {
    const printed = await printer.print(page);
    if (printed !== "more") return endOf(printed, name);
    if (page.isUpToDate && (page.isClosed || !isFollowing)) return null;
    const waiting = page.cursor === null ? {} : { cursor: page.cursor };
    const query = { offset: page.next, ...(page.isUpToDate ? { live: "long-poll", ...waiting } : {}) };
    const next = await nextPage(session, name, query, isFollowing);
    if (next.kind === "failure") return next;
    page = next;
  }
}

async function nextPage(
  session: Session,
  name: string,
  query: Readonly<Record<string, string>>,
  isFollowing: boolean,
): Promise<ReadPage | Failure> {
  const page = await readPage(session, name, query, { forEver: isFollowing });
  if (page.kind !== "gone") return page;
  if (!isFollowing || page.earliest === null) return goneFor(page);
  session.say(`${page.failure.line}: going on at the earliest that is left, ${page.earliest}`);
  const again = await readPage(session, name, { offset: page.earliest }, { forEver: true });
  return again.kind === "gone" ? again.failure : again;
}
