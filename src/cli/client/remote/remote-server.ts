// A server as the client verbs see it: requests that are sent again until they have an answer.

import type { Clock } from "../../../ops/clock.js";
import { EXIT } from "../../command/verb.js";
import { failure, isTransient, refusal, stopped, type Failure } from "./failure.js";
import type { Answer, Asked, Client, Heard } from "./http-client.js";
import { faultOfPlace } from "./stream-answer.js";

/** The options of {@link RemoteServer}. */
export interface RemoteServerOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** 0 or more and less than 1. */
  readonly random: () => number;
  /** The server, as messages name it. */
  readonly name: string;
  /** Whether it is shown a certificate. */
  readonly showsCertificate: boolean;
  readonly prefix: string;
  /** How long a request is sent again, in milliseconds; `null` for the defaults. */
  readonly patienceMs: number | null;
  /** Says on standard error what happens meanwhile. */
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/** How one request is sent again. */
export interface Insistence {
  /** Also for ever, once the server has answered. */
  readonly forEver?: boolean;
  /** Also where the stream is not there, which may be made meanwhile. */
  readonly awaitsStream?: boolean;
}

/** How long a server that has answered before is waited for, in milliseconds. */
const PATIENCE_MS = 60_000;
/** What `--wait` leaves a server at least to answer in, in milliseconds: the last request is to have a chance. */
const LEAST_ANSWER_MS = 1_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
/** The longest `Retry-After` that is waited for, in seconds. */
const MAX_RETRY_AFTER_S = 30;

/** Why a certificate is not trusted, where it would be by one more authority. */
const UNTRUSTED: ReadonlySet<string> = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** Whether a server is silent for long where nothing is wrong: it waits for what is appended. */
function isLive({ target }: Asked): boolean {
  return /[?&]live=/.test(target);
}

/** Whether the time of the request was one of waiting alone; one that broke later may have brought much. */
function isStall(heard: Heard): boolean {
  return heard.kind === "silence" && heard.hasStalled === true;
}

function hintAt(why: string): string {
  if (UNTRUSTED.has(why)) return "; NODE_EXTRA_CA_CERTS=FILE names a certificate to trust";
  return why === "EPROTO" ? "; it may speak no TLS: http://" : "";
}

/**
 * Sends each request until it is answered for good. Send only what may be sent twice. A server that does not answer the
 * first request is not waited for, unless a patience is given: its address may be wrong.
 */
export class RemoteServer {
  readonly #options: RemoteServerOptions;
  #hasAnswered = false;
  /** Silences and refusals since the last answer that counts. */
  #attempts = 0;

  constructor(options: RemoteServerOptions) {
    this.#options = options;
  }

  /** How often requests have been sent again that may have been done. */
  repeats = 0;

  /** The target of a stream, percent-encoded; its query in the order of names, so that caches know it again. */
  target(name: string, query: Readonly<Record<string, string>> = {}): string {
    const sorted = Object.entries(query).sort(([one], [other]) => (one < other ? -1 : 1));
    const written = sorted.map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
    const path = name.split("/").map(encodeURIComponent).join("/");
    return `${this.#options.prefix}${path}${written.length === 0 ? "" : `?${written.join("&")}`}`;
  }

  /** The path of a stream as a fork names its source. */
  pathOf(name: string): string {
    return this.target(name);
  }

  /**
   * The answer, whatever its status, but for those that say to try again: these, and silence, end in a failure once
   * the patience is over. When the verb is to end, the failure has no words.
   */
  async ask(asked: Asked, { forEver = false, awaitsStream = false }: Insistence = {}): Promise<Answer | Failure> {
    const { client, signal, clock, patienceMs, say, name } = this.#options;
    const isBounded = patienceMs !== null && patienceMs >= LEAST_ANSWER_MS && !isLive(asked);
    let sinceMs: number | null = null;
    for (;;) {
      const askedAtMs = clock.nowMs();
      const leftMs = (patienceMs ?? 0) - (askedAtMs - (sinceMs ?? askedAtMs));
      const hasEnd = isBounded && !(forEver && this.#hasAnswered);
      const heard = await client.ask(asked, hasEnd ? Math.max(LEAST_ANSWER_MS, leftMs) : undefined);
      if (signal.aborted) return stopped(signal);
      if (heard.kind === "too-long") return failure(EXIT.refused, `${name} sent an answer that is too long`);
      if (heard.kind === "unsendable") return failure(EXIT.refused, `this can't be sent: ${heard.why}`);
      if (heard.kind === "answer") this.#hasAnswered = true;
      if (heard.kind === "answer" && !isTransient(heard) && !(awaitsStream && heard.status === 404)) {
        if (sinceMs !== null) say(`${name} ${awaitsStream ? "has it now" : "answers again"}`);
        this.#attempts = 0;
        return heard;
      }
      const nowMs = clock.nowMs();
      const endless = forEver && this.#hasAnswered;
      const patience = patienceMs ?? (this.#hasAnswered ? PATIENCE_MS : 0);
      const final = this.#failureOf(heard, asked, patience === 0 && !endless);
      const fromMs: number = sinceMs ?? (hasEnd && isStall(heard) ? askedAtMs : nowMs);
      if (!endless && nowMs - fromMs >= patience) return final;
      if (sinceMs === null) say(`${final.line}; trying again`);
      sinceMs = fromMs;
      await this.#pause(heard, endless ? Infinity : fromMs + patience - nowMs);
      if (signal.aborted) return stopped(signal);
      // 408 and 429 say that nothing was done. A proxy's 5xx does not, nor does every 503 of a server.
      if (heard.kind === "silence" || heard.status >= 500) this.repeats += 1;
    }
  }

  /** The answer to a request about a stream; a failure where it is not the answer of a server of streams. */
  async askStream(asked: Asked, insistence: Insistence = {}): Promise<Answer | Failure> {
    const first = await this.ask(asked, insistence);
    if (first.kind === "failure") return first;
    const answer = asked.method === "HEAD" && first.status === 404 ? await this.#toldOf(asked, first) : first;
    return answer.kind === "failure" ? answer : (faultOfPlace(asked, answer, this.#options) ?? answer);
  }

  /** The answer to a HEAD that found nothing has no body to say whether a stream is missing, or all of them. */
  async #toldOf({ target }: Asked, found: Answer): Promise<Answer | Failure> {
    const told = await this.ask({ method: "GET", target: `${target}?offset=now` });
    return told.kind === "failure" || told.status === 404 ? told : found;
  }

  #failureOf(heard: Extract<Heard, { kind: "answer" | "silence" }>, { method }: Asked, isFirst: boolean): Failure {
    const { name, showsCertificate } = this.#options;
    if (heard.kind === "answer") return refusal(heard, `${method} at ${name}`);
    const isRefused = showsCertificate && !this.#hasAnswered && heard.why === "ECONNRESET";
    const waits = isFirst && heard.why === "ECONNREFUSED" ? "; --wait 1m waits for it" : "";
    const hint = isRefused ? "; it may not take this certificate" : waits;
    return failure(EXIT.unreachable, `${name} does not answer (${heard.why}${hintAt(heard.why)})${hint}`);
  }

  /** Waits longer from time to time, and never as long as others do; at most `leftMs`, and until the verb is to end. */
  async #pause(heard: Heard, leftMs: number): Promise<void> {
    const { clock, random, signal } = this.#options;
    const asked = heard.kind === "answer" ? Number(heard.header("retry-after") ?? "") : 0;
    const askedMs = Math.min(Number.isFinite(asked) ? asked : 0, MAX_RETRY_AFTER_S) * 1000;
    const ownMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#attempts) * (0.5 + random() / 2);
    this.#attempts = Math.min(this.#attempts + 1, 10);
    await new Promise<void>((resolve) => {
      const timer = clock.after(Math.min(leftMs, Math.max(askedMs, ownMs)), () => {
        signal.removeEventListener("abort", end);
        resolve();
      });
      const end = (): void => {
        timer.cancel();
        resolve();
      };
      signal.addEventListener("abort", end, { once: true });
    });
  }
}
