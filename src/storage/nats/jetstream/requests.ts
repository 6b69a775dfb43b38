import { randomBytes } from "node:crypto";
import { stopwatchMs, type Clock, type Timer } from "../../../ops/clock.js";
import { headerEncoder, type HeaderFields } from "../client/header-block.js";
import type { NatsClient, NatsConnection, NatsMessage } from "../client/nats-client.js";
import type { Subscriptions } from "./subscriptions.js";

/** How a request ended without an answer. */
type NoAnswer = { readonly kind: "nobody" | "silence" } | { readonly kind: "refused"; readonly why: string };

/**
 * How a request ended: with a `reply`; with the certainty that `nobody` has it, as no server serves the subject or none
 * is connected, or that it was `refused`, as the user may not ask it; or in `silence`: it may have been carried out.
 */
export type Answer = { readonly kind: "reply"; readonly message: NatsMessage } | NoAnswer;

/** Whether a message is the last of an answer that has several. */
export type IsLast = (message: NatsMessage, count: number) => boolean;

/** What is asked, of whom, and for how long its answer is waited for. */
interface Question {
  readonly subject: string;
  readonly payload: Uint8Array | string;
  readonly timeoutMs: number;
  readonly fields: HeaderFields | null;
  /** Takes a message of the answer; says whether it was the last. */
  readonly onMessage: (message: NatsMessage) => boolean;
  readonly onEnd: (answer: NoAnswer) => void;
}

/** A question that is sent at the end of the turn, and then waits for its answer. */
interface Pending extends Question {
  readonly token: string;
  readonly reply: string;
  /** By the clock that never jumps; put off by each message of an answer that has several. */
  endsAtMs: number;
  isSent: boolean;
}

const NO_RESPONDERS = 503;

/** Requests over one connection, with an inbox of their own. */
export class Requests {
  readonly #headersOf: ReturnType<typeof headerEncoder>;
  readonly #connection: NatsConnection;
  readonly #clock: Clock;
  readonly #nowMs: () => number;
  readonly #inbox = `_INBOX.${randomBytes(12).toString("hex")}`;
  readonly #pending = new Map<string, Pending>();
  /** What is to be sent once all that has arrived is looked at. */
  #outbox: Pending[] = [];
  #count = 0;
  #isConnected = true;
  /** Why no answer can come; `null` where one can. */
  #deafness: string | null = null;
  /** One timer for all that waits: it goes off when the first may be over. */
  #timer: Timer | null = null;
  #goesOffAtMs = Infinity;

  /** `nowMs` tells the time by a clock that never jumps. */
  constructor(
    client: NatsClient,
    connection: NatsConnection,
    subscriptions: Subscriptions,
    clock: Clock,
    nowMs: () => number = stopwatchMs,
  ) {
    this.#headersOf = headerEncoder(client);
    this.#connection = connection;
    this.#clock = clock;
    this.#nowMs = nowMs;
    subscriptions.add(`${this.#inbox}.*`, {
      onMessage: (message) => this.#take(message.subject.slice(this.#inbox.length + 1), message),
      onRefused: (why) => this.#deafen(why),
      onAgain: () => (this.#deafness = null),
    });
  }

  /** Whether a server is connected; when none is any more, what waits ends in silence. */
  setConnected(isConnected: boolean): void {
    this.#isConnected = isConnected;
    if (!isConnected) for (const pending of [...this.#pending.values()]) this.#end(pending, { kind: "silence" });
  }

  /** A server has refused what was published on a subject: that which was sent first of what waits for its answer. */
  refuse(subject: string, why: string): void {
    for (const pending of this.#pending.values())
      if (pending.subject === subject) return this.#end(pending, { kind: "refused", why });
  }

  /** The user may not subscribe to the inbox. What has gone out may be carried out all the same. */
  #deafen(why: string): void {
    this.#deafness = why;
    for (const pending of [...this.#pending.values()])
      this.#end(pending, pending.isSent ? { kind: "silence" } : { kind: "refused", why });
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Why the user may have no answers, as a server says; `null` where it may. */
  get deafness(): string | null {
    return this.#deafness;
  }

  /** Sends a request with these headers and waits for its answer. */
  ask(
    subject: string,
    payload: Uint8Array | string,
    timeoutMs: number,
    fields: HeaderFields | null = null,
  ): Promise<Answer> {
    return this.askFor(subject, payload, timeoutMs, fields, itself);
  }

  /** The same for what `read` makes of the answer. */
  askFor<T>(
    subject: string,
    payload: Uint8Array | string,
    timeoutMs: number,
    fields: HeaderFields | null,
    read: (answer: Answer) => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const onEnd = (answer: Answer): void => {
        try {
          resolve(read(answer));
        } catch (fault) {
          reject(fault);
        }
      };
      const onMessage = (message: NatsMessage): boolean => {
        onEnd(isFromNobody(message) ? { kind: "nobody" } : { kind: "reply", message });
        return true;
      };
      this.#send({ subject, payload, timeoutMs, fields, onMessage, onEnd });
    });
  }

  /** Sends a request and gathers what comes until the last, or until nothing has come for `timeoutMs`. */
  gather(subject: string, payload: string, timeoutMs: number, isLast: IsLast): Promise<readonly NatsMessage[]> {
    return new Promise((resolve) => {
      this.#send({ subject, payload, timeoutMs, fields: null, ...gathering(isLast, resolve) });
    });
  }

  /** The same of a consumer, whose messages come under their own subjects. */
  gatherDeliveries(
    subject: string,
    payload: string,
    timeoutMs: number,
    isLast: IsLast,
  ): Promise<readonly NatsMessage[]> {
    if (!this.#isConnected || this.#deafness !== null) return Promise.resolve([]);
    const token = this.#nextToken();
    const inbox = `${this.#inbox}.d.${token}`;
    const callback = (error: Error | null, message: NatsMessage): void => {
      if (!(error instanceof Error)) this.#take(token, message);
    };
    const subscription = this.#connection.subscribe(inbox, { callback });
    const gathered = new Promise<readonly NatsMessage[]>((resolve) => {
      this.#put(token, inbox, { subject, payload, timeoutMs, fields: null, ...gathering(isLast, resolve) });
    });
    return gathered.finally(() => subscription.unsubscribe());
  }

  #nextToken(): string {
    this.#count += 1;
    return this.#count.toString(36);
  }

  #send(question: Question): void {
    if (!this.#isConnected) return question.onEnd({ kind: "nobody" });
    if (this.#deafness !== null) return question.onEnd({ kind: "refused", why: this.#deafness });
    const token = this.#nextToken();
    this.#put(token, `${this.#inbox}.${token}`, question);
  }

  /**
   * Sends with all else that is asked for in this turn of the event loop: the client writes to its socket once for each
   * callback otherwise, and that write is the most of what a small request costs.
   */
  #put(token: string, reply: string, { subject, payload, timeoutMs, fields, onMessage, onEnd }: Question): void {
    const endsAtMs = this.#nowMs() + timeoutMs;
    // Written out: with a spread an append costs the front end a sixth more.
    const isSent = false;
    const pending: Pending = { token, subject, payload, reply, timeoutMs, fields, endsAtMs, isSent, onMessage, onEnd };
    this.#pending.set(token, pending);
    if (endsAtMs < this.#goesOffAtMs) this.#goOffAt(endsAtMs);
    if (this.#outbox.length === 0) setImmediate(() => this.#empty());
    this.#outbox.push(pending);
  }

  #empty(): void {
    const sends = this.#outbox;
    this.#outbox = [];
    for (const pending of sends) this.#publish(pending);
  }

  #publish(pending: Pending): void {
    const { token, subject, payload, reply, fields } = pending;
    // Its time is over, or the connection is lost: whoever asked has been told that nobody can say what became of it.
    if (!this.#pending.has(token)) return;
    try {
      const options = fields === null ? { reply } : { reply, headers: this.#headersOf(fields) };
      this.#connection.publish(subject, payload, options);
      pending.isSent = true;
    } catch {
      // It refuses what can't be sent: nothing has gone out.
      this.#end(pending, { kind: "nobody" });
    }
  }

  #take(token: string, message: NatsMessage): void {
    const pending = this.#pending.get(token);
    if (pending === undefined) return;
    if (pending.onMessage(message)) this.#pending.delete(token);
    else pending.endsAtMs = this.#nowMs() + pending.timeoutMs;
  }

  #end(pending: Pending, answer: NoAnswer): void {
    if (this.#pending.delete(pending.token)) pending.onEnd(answer);
  }

  #goOffAt(atMs: number): void {
    this.#timer?.cancel();
    this.#goesOffAtMs = atMs;
    // The timer's clock counts whole milliseconds.
    const delayMs = Math.max(1, Math.ceil(atMs - this.#nowMs()));
    this.#timer = this.#clock.after(delayMs, () => this.#endOverdue());
  }

  /** Ends what is over, and waits for the next. */
  #endOverdue(): void {
    this.#timer = null;
    this.#goesOffAtMs = Infinity;
    const nowMs = this.#nowMs();
    let nextMs = Infinity;
    for (const pending of [...this.#pending.values()]) {
      if (pending.endsAtMs <= nowMs) this.#end(pending, { kind: "silence" });
      else nextMs = Math.min(nextMs, pending.endsAtMs);
    }
    // Whoever was told may have asked anew.
    if (nextMs < this.#goesOffAtMs) this.#goOffAt(nextMs);
  }

  /** Ends all that waits. */
  close(): void {
    this.setConnected(false);
    this.#timer?.cancel();
    this.#goesOffAtMs = Infinity;
  }
}

function itself(answer: Answer): Answer {
  return answer;
}

/** Gathers messages until the last, or as many as come. */
function gathering(
  isLast: IsLast,
  resolve: (found: readonly NatsMessage[]) => void,
): Pick<Question, "onMessage" | "onEnd"> {
  const found: NatsMessage[] = [];
  const onEnd = (): void => resolve(found);
  const onMessage = (message: NatsMessage): boolean => {
    const isNobody = isFromNobody(message);
    if (!isNobody) found.push(message);
    const isOver = isNobody || isLast(message, found.length);
    if (isOver) onEnd();
    return isOver;
  };
  return { onMessage, onEnd };
}

function isFromNobody({ headers, data }: NatsMessage): boolean {
  return headers?.code === NO_RESPONDERS && data.length === 0;
}
