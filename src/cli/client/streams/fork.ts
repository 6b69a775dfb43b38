// The verb `fork`.

import type { Failure } from "../remote/failure.js";
import { clientTask, flag, streamCalled, type Session } from "../session/session.js";
import { concludeCreation, LIFETIME_FLAGS, lifetimeOf } from "./create.js";

/** The row of the table of verbs. */
export const FORK = clientTask({
  name: "fork",
  summary: "make a stream that begins as another one, without copying it",
  words: [
    { placeholder: "SOURCE", isRequired: true },
    { placeholder: "NAME", isRequired: true },
  ],
  flags: [
    flag("at", "text", "OFFSET", "where it leaves its source; the source's tail when it is left out"),
    flag("skip", "integer", "N", "so many messages, or bytes, behind --at; behind the start without it"),
    ...LIFETIME_FLAGS,
  ],
  run: fork,
});

async function fork(session: Session): Promise<Failure | null> {
  const { given, server } = session;
  const [source, name] = [session.name(0), session.name(1)];
  if (typeof source !== "string") return source;
  if (typeof name !== "string") return name;
  const lifetime = lifetimeOf(session);
  if (lifetime.kind === "failure") return lifetime;
  const skip = given.text("skip");
  const at = given.text("at") ?? (skip === null ? null : "-1");
  const headers = {
    "Stream-Forked-From": server.pathOf(source),
    ...(at === null ? {} : { "Stream-Fork-Offset": at }),
    ...(skip === null ? {} : { "Stream-Fork-Sub-Offset": skip }),
    ...lifetime.headers,
  };
  const about = `${streamCalled(name)} from ${streamCalled(source)}`;
  const answer = await session.expect([200, 201], about, { method: "PUT", target: server.target(name), headers });
  return answer.kind === "failure" ? answer : concludeCreation(session, name, answer);
}
