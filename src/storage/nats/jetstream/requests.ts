import { randomBytes } from "node:crypto";
import type { Clock, Timer } from "../../../ops/clock.js";
import type { NatsClient, NatsConnection, NatsHeaders, NatsMessage } from "./nats-client.js";

/**
 * How a request ended: with a `reply`; with the certainty that `nobody` has it, as no server serves the subject or none
 * is connected; or in `silence`: it may have been carried out.
 */
export type Answer =
  { readonly kind: "reply"; readonly message: NatsMessage } | { readonly kind: "nobody" | "silence" };

/** Whether a message is the last of an answer that has several. */
export type IsLast = (message: NatsMessage, count: number) => boolean;

/** One request that waits. */
interface Pending {
  readonly timer: Timer;
  take(message: NatsMessage): void;
  end(kind: "nobody" | "silence"): void;
}

const NO_RESPONDERS = 503;

/** Requests over one connection, with an inbox of their own. */
export class Requests {
  readonly #client: NatsClient;
  readonly #connection: NatsConnection;
  readonly #clock: Clock;
  readonly #inbox = `_INBOX.${randomBytes(12).toString("hex")}`;
  readonly #pending = new Map<string, Pending>();
  /** What is to be sent once all that has arrived is looked at. */
  #outbox: (() => void)[] = [];
  #count = 0;
  #isConnected = true;

  constructor(client: NatsClient, connection: NatsConnection, clock: Clock) {
    this.#client = client;
    this.#connection = connection;
    this.#clock = clock;
    connection.subscribe(`${this.#inbox}.*`, {
      callback: (_error, message) => this.#pending.get(message.subject.slice(this.#inbox.length + 1))?.take(message),
    });
  }

  /** Whether a server is connected; when none is any more, what waits ends in silence. */
  setConnected(isConnected: boolean): void {
    this.#isConnected = isConnected;
    if (!isConnected) for (const pending of [...this.#pending.values()]) pending.end("silence");
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Headers with these names and values. */
  headersOf(entries: Readonly<Record<string, string>>): NatsHeaders {
    const headers = this.#client.headers();
    for (const [name, value] of Object.entries(entries)) headers.append(name, value);
    return headers;
  }

  /** Sends a request and waits for its one reply. */
  ask(subject: string, payload: Uint8Array | string, timeoutMs: number, headers?: NatsHeaders): Promise<Answer> {
    return new Promise((resolve) => {
      const take = (message: NatsMessage): boolean => {
        resolve(isFromNobody(message) ? { kind: "nobody" } : { kind: "reply", message });
        return true;
      };
      this.#send(subject, payload, timeoutMs, headers, take, resolve);
    });
  }

  /** Sends a request and gathers what comes until the last; `null` where that does not come in time. */
  gather(subject: string, payload: string, timeoutMs: number, isLast: IsLast): Promise<readonly NatsMessage[] | null> {
    return new Promise((resolve) => {
      const take = gathering(isLast, resolve);
      this.#send(subject, payload, timeoutMs, undefined, take, () => resolve(null));
    });
  }

  /** The same of a consumer, whose messages come under their own subjects. */
  gatherDeliveries(
    subject: string,
    payload: string,
    timeoutMs: number,
    isLast: IsLast,
  ): Promise<readonly NatsMessage[] | null> {
    if (!this.#isConnected) return Promise.resolve(null);
    const token = this.#nextToken();
    const inbox = `${this.#inbox}.d.${token}`;
    const subscription = this.#connection.subscribe(inbox, {
      callback: (_error, message) => this.#pending.get(token)?.take(message),
    });
    const gathered = new Promise<readonly NatsMessage[] | null>((resolve) => {
      this.#await(token, timeoutMs, gathering(isLast, resolve), () => resolve(null));
      this.#publish(token, subject, payload, { reply: inbox });
    });
    return gathered.finally(() => subscription.unsubscribe());
  }

  #nextToken(): string {
    this.#count += 1;
    return this.#count.toString(36);
  }

  /** `onMessage` says whether it was the last. */
  #send(
    subject: string,
    payload: Uint8Array | string,
    timeoutMs: number,
    headers: NatsHeaders | undefined,
    onMessage: (message: NatsMessage) => boolean,
    onEnd: (answer: { readonly kind: "nobody" | "silence" }) => void,
  ): void {
    if (!this.#isConnected) return onEnd({ kind: "nobody" });
    const token = this.#nextToken();
    this.#await(token, timeoutMs, onMessage, onEnd);
    const reply = `${this.#inbox}.${token}`;
    this.#publish(token, subject, payload, headers === undefined ? { reply } : { reply, headers });
  }

  /**
   * Sends with all else that is asked for in this turn of the event loop: the client writes to its socket once for each
   * callback otherwise, and that write is the most of what a small request costs.
   */
  #publish(
    token: string,
    subject: string,
    payload: Uint8Array | string,
    options: Parameters<NatsConnection["publish"]>[2],
  ): void {
    if (this.#outbox.length === 0) setImmediate(() => this.#empty());
    this.#outbox.push(() => {
      // Its time is over, or the connection is lost: whoever asked has been told that nobody can say what became of it.
      if (!this.#pending.has(token)) return;
      try {
        this.#connection.publish(subject, payload, options);
      } catch {
        // It refuses what can't be sent: nothing has gone out.
        this.#pending.get(token)?.end("nobody");
      }
    });
  }

  #empty(): void {
    const sends = this.#outbox;
    this.#outbox = [];
    for (const send of sends) send();
  }

  #await(
    token: string,
    timeoutMs: number,
    onMessage: (message: NatsMessage) => boolean,
    onEnd: (answer: { readonly kind: "nobody" | "silence" }) => void,
  ): void {
    const timer = this.#clock.after(timeoutMs, () => end("silence"));
    const forget = (): void => {
      timer.cancel();
      this.#pending.delete(token);
    };
    const end = (kind: "nobody" | "silence"): void => {
      forget();
      onEnd({ kind });
    };
    const take = (message: NatsMessage): void => {
      if (onMessage(message)) forget();
    };
    this.#pending.set(token, { timer, take, end });
  }

  /** Ends all that waits. */
  close(): void {
    this.setConnected(false);
  }
}

/** Gathers messages until the last; says whether that has come. */
function gathering(
  isLast: IsLast,
  resolve: (found: readonly NatsMessage[] | null) => void,
): (message: NatsMessage) => boolean {
  const found: NatsMessage[] = [];
  return (message) => {
    const isNobody = isFromNobody(message);
    if (!isNobody) found.push(message);
    const isOver = isNobody || isLast(message, found.length);
    if (isOver) resolve(isNobody ? null : found);
    return isOver;
  };
}

function isFromNobody({ headers, data }: NatsMessage): boolean {
  return headers?.code === NO_RESPONDERS && data.length === 0;
}
