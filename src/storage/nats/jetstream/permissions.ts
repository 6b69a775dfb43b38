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

/** How long it is known without a question that a refusal holds: less than the time between two looks at a shard. */
const FRESH_MS = 900;

interface Refusal {
  readonly why: string;
  readonly atMs: number;
}

/** What servers refuse the user: writes, by the JetStream stream, and calls of the API, by the call. */
export class Refusals {
  readonly #nowMs: () => number;
  readonly #held = new Map<string, Refusal>();

  /** `nowMs` tells the time by a clock that never jumps. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** A server has refused it now. */
  add(what: string, why: string): void {
    this.#held.set(what, { why, atMs: this.#nowMs() });
  }

  has(what: string): boolean {
    return this.#held.has(what);
  }

  /** Why it is refused; `null` where it is not, as far as is known. */
  whyOf(what: string): string | null {
    return this.#held.get(what)?.why ?? null;
  }

  /** Whether it was refused just now: a server logs each question that it refuses, so it is not asked once more. */
  isFresh(what: string): boolean {
    return this.#nowMs() - (this.#held.get(what)?.atMs ?? -Infinity) < FRESH_MS;
  }

  /** It is not refused any more. Says whether it was. */
  end(what: string): boolean {
    return this.#held.delete(what);
  }

  /** Another server is asked from now on. Only what `isAskedFor` by itself is kept until that one has answered. */
  moved(isAskedFor: (what: string) => boolean): void {
    for (const [what, { why }] of [...this.#held])
      if (isAskedFor(what)) this.#held.set(what, { why, atMs: -Infinity });
      else this.#held.delete(what);
  }
}
