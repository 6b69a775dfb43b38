// The verb `close`.

import type { Failure } from "../remote/failure.js";
import { clientTask, NAME, nextOffsetOf, streamCalled, type Session } from "../session/session.js";

/** The row of the table of verbs. */
export const CLOSE = clientTask({
  name: "close",
  summary: "close a stream for good: its readers learn that this is the end",
  words: [NAME],
  run: close,
});

async function close(session: Session): Promise<Failure | null> {
  const name = session.name(0);
  if (typeof name !== "string") return name;
  const target = session.server.target(name);
  const headers = { "Stream-Closed": "true" };
  const answer = await session.expect([200, 204], streamCalled(name), { method: "POST", target, headers });
  if (answer.kind === "failure") return answer;
  return session.conclude(`${streamCalled(name)} is closed`, { name, closed: true, nextOffset: nextOffsetOf(answer) });
}
