// The verb `create`.

import { parseTimestamp } from "../../../protocol/timestamp.js";
import { parseDuration, parseWhole, quoted } from "../../command/value.js";
import { EXIT } from "../../command/verb.js";
import { failure, type Failure } from "../remote/failure.js";
import type { Answer } from "../remote/http-client.js";
import { clientTask, flag, NAME, nextOffsetOf, streamCalled, type Session } from "../session/session.js";

/** The flags of whatever makes a stream. */
export const LIFETIME_FLAGS = [
  flag("ttl", "text", "TIME", "expires so long after its last use, like 30d or 90s"),
  flag("expires-at", "text", "TIME", "expires at a time in the future, like 2030-01-31T12:00:00Z"),
];

/** The row of the table of verbs. */
export const CREATE = clientTask({
  name: "create",
  summary: "make a stream; one that is there already, made alike, is left as it is",
  words: [NAME],
  flags: [
    flag("type", "text", "TYPE", "its content type; application/octet-stream when it is left out"),
    ...LIFETIME_FLAGS,
    flag("closed", "flag", "", "it takes no data, ever"),
  ],
  run: create,
});

async function create(session: Session): Promise<Failure | null> {
  const { given, server } = session;
  const name = session.name(0);
  if (typeof name !== "string") return name;
  const lifetime = lifetimeOf(session);
  if (lifetime.kind === "failure") return lifetime;
  const headers = {
    "Content-Type": given.text("type") ?? "application/octet-stream",
    ...lifetime.headers,
    ...(given.has("closed") ? { "Stream-Closed": "true" } : {}),
  };
  const about = streamCalled(name);
  const answer = await session.expect([200, 201], about, { method: "PUT", target: server.target(name), headers });
  return answer.kind === "failure" ? answer : concludeCreation(session, name, answer);
}

/** Says what was made, or was there. */
export function concludeCreation(session: Session, name: string, answer: Answer): Promise<null> {
  const created = answer.status === 201;
  const facts = {
    name,
    created,
    contentType: answer.header("content-type"),
    nextOffset: nextOffsetOf(answer),
    closed: answer.header("stream-closed") === "true",
  };
  return session.conclude(`${streamCalled(name)} ${created ? "is made" : "is there already"}`, facts);
}

/** What a creation says of how long the stream lives. */
export interface Lifetime {
  readonly kind: "lifetime";
  readonly headers: Readonly<Record<string, string>>;
}

/** The headers for `--ttl` and `--expires-at`. The protocol has lifetimes that are over at once: nobody types one. */
export function lifetimeOf({ given, clock }: Session): Lifetime | Failure {
  const [ttl, expiresAt] = [given.text("ttl"), given.text("expires-at")];
  if (ttl !== null && expiresAt !== null)
    return failure(EXIT.usage, "--ttl and --expires-at exclude each other: give one of them");
  const seconds = ttl === null ? null : wholeSeconds(ttl);
  if (ttl !== null && seconds === null)
    return failure(
      EXIT.usage,
      `--ttl must be 1s or more in whole seconds, like 30d or 90s, not ${quoted(ttl)}; ` +
        "leave it out for a stream that does not expire",
    );
  // The server says what is no time at all.
  const endMs = parseTimestamp(expiresAt ?? "");
  if (expiresAt !== null && endMs !== null && endMs <= clock.nowMs())
    return failure(EXIT.usage, `--expires-at must be in the future, not ${quoted(expiresAt)}`);
  const headers = {
    ...(seconds === null ? {} : { "Stream-TTL": String(seconds) }),
    ...(expiresAt === null ? {} : { "Stream-Expires-At": expiresAt }),
  };
  return { kind: "lifetime", headers };
}

/** 1 or more; `null` for anything else. A number without a unit is of seconds. */
function wholeSeconds(text: string): number | null {
  const seconds = parseWhole(text) ?? (parseDuration(text) ?? 0) / 1000;
  return Number.isInteger(seconds) && seconds >= 1 ? seconds : null;
}
