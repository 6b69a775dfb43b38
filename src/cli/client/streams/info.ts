// The verb `info`.

import { oneLine } from "../../../ops/log.js";
import { refusal, type Failure } from "../remote/failure.js";
import type { Answer } from "../remote/http-client.js";
import { clientTask, NAME, nextOffsetOf, streamCalled, type Session } from "../session/session.js";
import { lookUp, type ListedStream } from "./listing.js";

/** The row of the table of verbs. */
export const INFO = clientTask({
  name: "info",
  summary: "say what a stream is: its content type, tail, lifetime and closure",
  words: [NAME],
  run: info,
});

async function info(session: Session): Promise<Failure | null> {
  const name = session.name(0);
  if (typeof name !== "string") return name;
  const stream = await describe(session, name);
  if ("kind" in stream) return stream;
  if (session.asJson) await session.out.writeJson(stream);
  else await session.out.write(linesOf(stream, (name) => session.out.shown(name)));
  return null;
}

/** What the server says of a stream: the list says more than the stream's own head. */
export async function describe(session: Session, name: string): Promise<ListedStream | Failure> {
  const head = await session.server.askStream({ method: "HEAD", target: session.server.target(name) });
  if (head.kind === "failure") return head;
  if (head.status !== 200) return refusal(head, streamCalled(name));
  const listed = await lookUp(session, name);
  if (listed !== null) return listed;
  const lifetime = lifetimeOf(head);
  // What is left of a time to live says when it ends, and not how long it is.
  const endsAt = lifetime.ttlSeconds === null ? null : new Date(Date.now() + lifetime.ttlSeconds * 1000);
  return {
    name,
    contentType: head.header("content-type") ?? "application/octet-stream",
    closed: head.header("stream-closed") === "true",
    nextOffset: nextOffsetOf(head),
    earliestOffset: head.header("stream-earliest-offset"),
    bytes: null,
    createdAt: null,
    lastAppendAt: null,
    ttlSeconds: null,
    expiresAt: endsAt?.toISOString() ?? lifetime.expiresAt,
    isFork: false,
    forkedFrom: null,
    liveReaders: null,
    producers: null,
    may: null,
  };
}

/** What the head of a stream says of its lifetime: the seconds that are left of a time to live. */
export function lifetimeOf({ header }: Answer): Pick<ListedStream, "ttlSeconds" | "expiresAt"> {
  const ttl = header("stream-ttl");
  return { ttlSeconds: ttl === null ? null : Number(ttl), expiresAt: header("stream-expires-at") };
}

/** The rows that hold a name: scripts get these as they are. */
const NAME_ROWS: ReadonlySet<string> = new Set(["name", "forked from"]);

function linesOf(stream: ListedStream, shown: (name: string) => string): string {
  const rows: readonly (readonly [string, string | number | null])[] = [
    ["name", stream.name],
    ["content type", stream.contentType],
    ["state", stream.closed ? "closed" : "open"],
    ["tail", stream.nextOffset],
    ["earliest", stream.earliestOffset],
    ["bytes", stream.bytes],
    ["created", stream.createdAt],
    ["last append", stream.lastAppendAt],
    ["TTL in seconds", stream.ttlSeconds],
    ["expires", stream.expiresAt],
    ["forked from", stream.forkedFrom],
    ["live readers", stream.liveReaders],
    ["producers", stream.producers],
    ["you may", stream.may?.join(", ") ?? null],
  ];
  const known = rows.filter(([, value]) => value !== null);
  return known
    .map(
      ([what, value]) => `${what.padEnd(16)}${NAME_ROWS.has(what) ? shown(String(value)) : oneLine(String(value))}\n`,
    )
    .join("");
}
