import { once } from "node:events";
import http from "node:http";
import { systemClock } from "../../../src/ops/clock.js";

/** What a front end answered. */
export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** What a request has beyond its method and target. */
export interface RequestParts {
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** A client that has no answer by then asks the other front end. */
const ANSWER_WITHIN_MS = 3000;

const HEALTH_WITHIN_MS = 60_000;

const clock = systemClock();

/** Resolves after that many milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

/** The two front ends that a load goes through; each has the same streams. */
export class Fronts {
  /** What a stream's name is appended to, at each of them. */
  readonly urls: string[];
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 200 });

  constructor(urls: readonly string[]) {
    this.urls = [...urls];
  }

  /** The address of a stream at one front end; `at` may be any number. */
  urlOf(at: number, target: string): string {
    return new URL(target, this.urls[at % this.urls.length]).href;
  }

  /** One request; `null` where nobody can say what became of it. */
  async ask(at: number, method: string, target: string, { headers = {}, body = "" }: RequestParts = {}): Promise<Answer | null> {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    try {
      const request = http.request(this.urlOf(at, target), { method, headers, agent: this.#agent, signal });
      request.end(body);
      const [response] = (await once(request, "response")) as [http.IncomingMessage]; // the event's argument
      const pieces: Buffer[] = [];
      for await (const piece of response) pieces.push(piece as Buffer); // no encoding is set
      return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(pieces) };
    } catch (fault) {
      if (fault instanceof Error) return null; // the connection broke, or it took too long
      throw fault;
    }
  }

  /** Asks one front end after the other until one says something else than 503; `onRetry` is told of each other try. */
  async insist(at: number, method: string, target: string, parts: RequestParts = {}, onRetry?: (why: string) => void): Promise<Answer> {
    for (let tries = 0; ; tries += 1) {
      const answer = await this.ask(at + tries, method, target, parts);
      if (answer !== null && answer.status !== 503) return answer;
      onRetry?.(answer === null ? "no answer" : codeOf(answer));
      await pause(50 + Math.min(tries, 10) * 20);
    }
  }

  /** Resolves when `/health` of one front end answers so; says how long that took, in milliseconds. */
  async health(at: number, status: number, reason = /./): Promise<number> {
    const sinceMs = performance.now();
    for (;;) {
      const answer = await this.ask(at, "GET", "../../health");
      if (answer?.status === status && reason.test(answer.body.toString())) return performance.now() - sinceMs;
      if (performance.now() - sinceMs > HEALTH_WITHIN_MS)
        throw new Error(`/health is ${answer?.status} ${answer?.body.toString()}, not ${status}`);
      await pause(50);
    }
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The position that an answer's token stands for. */
export function positionOf(token: string | string[] | undefined): number {
  const [part = "", place = ""] = String(token).split("_");
  return Number(part) + Math.floor(Number(place) / 1e6);
}

/** What a problem is called. */
export function codeOf({ status, body }: Answer): string {
  return /"code":"([a-z-]+)"/.exec(body.toString())?.[1] ?? String(status);
}

/** Where the answer says that the stream goes on. */
export function nextOf({ headers }: Answer): number {
  return positionOf(headers["stream-next-offset"]);
}
