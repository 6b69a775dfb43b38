// Puts a page of the list of streams together.

import type { Operation } from "../../../auth/rights/operation.js";
import { nextTurn, TURN_OF_NAMES } from "../../../ops/turns.js";
import { nameMatcher } from "../../../protocol/names/name-pattern.js";
import {
  commonRanges,
  justAfter,
  namesBeginningWith,
  rangesOfPattern,
  type NameRange,
} from "../../../protocol/names/name-range.js";
import { formatTimestamp } from "../../../protocol/timestamp.js";
import { Stream, type StoredStream } from "../../../stream/loaded/stream.js";
import { deadlineOf, TOUCH_INTERVAL_MS } from "../../../stream/rules/expiry.js";
import { offsetIn } from "../../../stream/rules/offset-tokens.js";
import { maySee, type Lister } from "../../access/access.js";
import type { Context } from "../../context/context.js";
import { problem, type Problem } from "../../encoding/problems.js";
import type { ListQuery } from "../../request/list-query.js";
import { atEvenTime } from "./even-time.js";
import { visibleNames } from "./visible-names.js";

/** Live readers of a stream. */
export type ReadersOf = (stream: Stream) => number;

/** A page of the list (docs/api.md, List). */
export interface ListPage {
  readonly streams: readonly object[];
  /** The `after` of the next page; `null` behind the last stream. */
  readonly next: string | null;
}

/** Names that one page looks at, with those that its caller may not see. */
const MAX_LOOKS = 1_000_000;
/** Files that a page may read: one for each stream, there or not, and for each source of a fork. */
const MAX_COST = 10_000;
/** What a caller may do with a stream that the list has. */
const ON_STREAMS = ["read", "append", "close", "delete"] as const satisfies readonly Operation[];
/** Streams looked up at a time. */
const CONCURRENCY = 32;
/** Of how many names is asked what the caller may, and which it asks for, before others may have their turn. */
const NAMES_PER_CLOCK = 64;
const MATCHES_PER_CLOCK = 8;
/** The latest time that a timestamp can say. */
const MAX_TIME_MS = 253_402_300_799_999;

const TOO_BROAD = problem("list-too-broad", {
  detail: `Among ${MAX_LOOKS} streams, or ${MAX_COST} files, there is none to list: narrow it with prefix.`,
});

/** Whether a query is for streams of a name. */
export function isAskedFor({ prefix, match }: ListQuery): (name: string) => boolean {
  const matches = match === null ? null : nameMatcher(match);
  return (name) => name.startsWith(prefix) && (matches === null || matches(name));
}

/**
 * The page that is asked for, or why there is none; what there is so far, once `isGone` says that nobody waits for it.
 * Throws what looking at a stream throws.
 */
export async function listPage(
  context: Context,
  lister: Lister,
  query: ListQuery,
  readersOf: ReadersOf,
  isGone: () => boolean = () => false,
): Promise<ListPage | Problem> {
  // Names that begin with nothing of its caller's are not even looked at, so that the time says nothing of them.
  const ranges = commonRanges(lister.ranges(), askedRanges(query), justAfter(query.after));
  const page = (): Promise<ListPage | Problem> => pageOf({ context, lister, query, readersOf, isGone }, ranges);
  // Without an index there may be any number of others to look at.
  return ranges.some(({ sources }) => sources !== undefined) ? atEvenTime(context.clock, page) : page();
}

/** What {@link listPage} makes a page from. */
interface PageParts {
  readonly context: Context;
  readonly lister: Lister;
  readonly query: ListQuery;
  readonly readersOf: ReadersOf;
  readonly isGone: () => boolean;
}

/** A page of the names in `ranges`. */
async function pageOf(parts: PageParts, ranges: readonly NameRange[]): Promise<ListPage | Problem> {
  const { context, lister, query, readersOf, isGone } = parts;
  const isAsked = isAskedFor(query);
  const { limit } = query;
  const page: PageSoFar = { streams: [], last: "", cost: 0 };
  let looks = 0;
  const look = async (name: string): Promise<Look> => {
    const stored = await context.streamList.look(name);
    if (stored === null) return { entry: null, cost: 1 };
    // The sources of a fork that is not in memory may each cost a file.
    const cost = stored.observer === null ? 1 + stored.forkDepth : 1;
    return { entry: entryOf(context, lister, stored, readersOf), cost };
  };
  const end = (): ListPage | Problem =>
    page.streams.length > 0 ? { streams: page.streams, next: page.last } : TOO_BROAD;
  for await (const names of visibleNames(context.streamList, ranges)) {
    const seen = await filteredInTurns(names, (name) => maySee(lister, name), NAMES_PER_CLOCK);
    const wanted = await filteredInTurns(seen, isAsked, MATCHES_PER_CLOCK);
    await addEntries(page, wanted, limit, look, isGone);
    looks += names.length;
    if (isFull(page, limit) || isGone() || looks >= MAX_LOOKS) return end();
    await nextTurn();
  }
  return { streams: page.streams, next: null };
}

/** A page as far as it is put together. */
interface PageSoFar {
  readonly streams: object[];
  /** The name of its last stream. */
  last: string;
  /** Files that it may have taken. Of what its caller may see alone: where a page ends tells of nothing else. */
  cost: number;
}

/** What comes of a name. */
interface Look {
  /** `null` where there is no stream. */
  readonly entry: object | null;
  /** Files that it may have taken. */
  readonly cost: number;
}

function isFull({ streams, cost }: PageSoFar, limit: number): boolean {
  return streams.length >= limit || cost >= MAX_COST;
}

/** Adds the streams of these names that are there, at most until the page is full or nobody waits for it. */
async function addEntries(
  page: PageSoFar,
  names: readonly string[],
  limit: number,
  look: (name: string) => Promise<Look>,
  isGone: () => boolean,
): Promise<void> {
  for (let at = 0; at < names.length && !isFull(page, limit) && !isGone();) {
    const group = names.slice(at, at + Math.min(CONCURRENCY, limit - page.streams.length));
    at += group.length;
    for (const [index, { entry, cost }] of (await Promise.all(group.map(look))).entries()) {
      page.cost += cost;
      if (entry !== null) {
        page.streams.push(entry);
        page.last = group[index] ?? page.last;
      }
      if (isFull(page, limit)) return;
    }
  }
}

/**
 * The names that `isWanted`, which may take long to say: others have their turns meanwhile. What it waits for does not
 * depend on the names, but for each `perClock` of them.
 */
async function filteredInTurns(
  names: readonly string[],
  isWanted: (name: string) => boolean,
  perClock: number,
): Promise<readonly string[]> {
  const wanted: string[] = [];
  if (TURN_OF_NAMES.isSpent) await TURN_OF_NAMES.next();
  for (const [at, name] of names.entries()) {
    if (at > 0 && at % perClock === 0 && TURN_OF_NAMES.isSpent) await TURN_OF_NAMES.next();
    if (isWanted(name)) wanted.push(name);
  }
  return wanted;
}

/** Where the names are that are asked for: others need no look. That these have more is the caller's own choice. */
function askedRanges({ prefix, match }: ListQuery): readonly NameRange[] {
  const begun = [namesBeginningWith(prefix)];
  const matched = match === null ? begun : commonRanges(begun, rangesOfPattern(match), "");
  return matched.map(({ from, to }) => ({ from, to }));
}

/** A stream as the list has it; `null` where its time is over. */
function entryOf(
  { clock, settings }: Pick<Context, "clock" | "settings">,
  lister: Lister,
  stored: StoredStream,
  readersOf: ReadersOf,
): object | null {
  const stream = stored.observer instanceof Stream ? stored.observer : null;
  const deadlineMs = stream?.deadlineMs ?? deadlineOf(stored.config, stored.state.touchedAtMs, settings.ttl);
  if (deadlineMs + (stream === null ? TOUCH_INTERVAL_MS : 0) <= clock.nowMs()) return null;
  const { createdAtMs, ttlSeconds, forkedFrom } = stored.config;
  // A list never shows a name that the caller may not read.
  const source = forkedFrom !== null && lister.may("read", forkedFrom.name) ? forkedFrom.name : null;
  return {
    ...placeOf(stored),
    earliestOffset: offsetIn(stored, stored.earliest),
    bytes: stored.state.tail - stored.earliest,
    createdAt: formatTimestamp(createdAtMs),
    lastAppendAt: stored.newestAtMs === null ? null : formatTimestamp(stored.newestAtMs),
    ttlSeconds,
    expiresAt: deadlineMs <= MAX_TIME_MS ? formatTimestamp(deadlineMs) : null,
    isFork: forkedFrom !== null,
    forkedFrom: source,
    liveReaders: stream === null ? 0 : readersOf(stream),
    producers: stored.state.producers?.size ?? 0,
    may: ON_STREAMS.filter((operation) => isServed(operation, settings.readOnly) && lister.may(operation, stored.name)),
  };
}

/** Whether the server does that at all. */
function isServed(operation: Operation, readOnly: boolean): boolean {
  return !readOnly || operation === "read";
}

/** What the list and its events say of a stream. */
export function placeOf(stored: StoredStream): object {
  const { name, config, state } = stored;
  return { name, contentType: config.contentType, closed: state.closed, nextOffset: offsetIn(stored, state.tail) };
}
