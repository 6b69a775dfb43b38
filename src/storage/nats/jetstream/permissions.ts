import type { Answer, Requests } from "./requests.js";

/** A message with this header is stored only by the JetStream stream of that name. */
const EXPECTED_STREAM_HEADER = "Nats-Expected-Stream";
const ANSWER_TIMEOUT_MS = 2000;

/**
 * How a publish to a subject ends: with a `reply` where the user may publish to it. What is published for it is never
 * stored: it expects a stream that is not there.
 */
export function publishInVain(requests: Requests, subject: string): Promise<Answer> {
  return requests.ask(subject, "", ANSWER_TIMEOUT_MS, [[EXPECTED_STREAM_HEADER, "none"]]);
}

/** Why the user may not publish to a subject; `null` where it may, or where that can't be told. */
export async function whyNotPublish(requests: Requests, subject: string): Promise<string | null> {
  const answer = await publishInVain(requests, subject);
  return answer.kind === "refused" ? answer.why : null;
}

/** What kept the user from something, with what to do about it. */
export function withAdvice(why: string): string {
  return `the user of the NATS servers may not do what streamdir needs: ${why}; docs/cluster.md has the permissions`;
}
