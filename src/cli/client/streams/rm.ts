// The verb `rm`.

import { EXIT } from "../../command/verb.js";
import { failure, patternRefused, refusal, type Failure } from "../remote/failure.js";
import { clientTask, flag, NAME, streamCalled, type Session } from "../session/session.js";

/** The row of the table of verbs. */
export const RM = clientTask({
  name: "rm",
  summary: "delete a stream and all that it holds",
  words: [NAME],
  flags: [flag("yes", "flag", "", "do it")],
  run: rm,
});

async function rm(session: Session): Promise<Failure | null> {
  const { given, server } = session;
  const name = session.name(0);
  if (typeof name !== "string") return name;
  const about = streamCalled(name);
  if (!given.has("yes")) return failure(EXIT.usage, `${about} is deleted for good with --yes; nothing was done`);
  const { repeats } = server;
  const answer = await session.expect([204, 404], about, { method: "DELETE", target: server.target(name) });
  if (answer.kind === "failure") return answer;
  // After a lost answer the stream may be gone because of the request before.
  if (answer.status === 404 && server.repeats === repeats) return patternRefused(refusal(answer, about), "rm", name);
  return session.conclude(`${about} is deleted`, { name, deleted: true });
}
