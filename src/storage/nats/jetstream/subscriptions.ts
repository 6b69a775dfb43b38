import type { Clock, Timer } from "../../../ops/clock.js";
import type { NatsConnection, NatsMessage } from "../client/nats-client.js";
import { kindOf } from "./subject-kind.js";

/** How soon a refused subscription is tried again; twice as late each time, as a server logs each refusal. */
const TRY_AGAIN_MS = 3000;
const MAX_PAUSE_MS = 60_000;

/** Who takes the messages of a subject. */
export interface Subscriber {
  readonly onMessage: (message: NatsMessage) => void;
  /**
   * A server refuses the subscription: no message comes any more. Whoever is told of that can't do without: while it is
   * refused no pause gets longer.
   */
  readonly onRefused?: (why: string) => void;
  /** It is taken again; what was sent meanwhile was missed. */
  readonly onAgain?: () => void;
}

interface Subscription {
  readonly subject: string;
  readonly subscriber: Subscriber;
  /** What the client has of it; `null` once a server has refused it. */
  made: { unsubscribe(): void } | null;
}

/**
 * Subscriptions that last. The client drops one that a server refuses; here it is tried again, as the user may get its
 * permissions back.
 */
export class Subscriptions {
  readonly #connection: Pick<NatsConnection, "subscribe" | "flush">;
  readonly #clock: Pick<Clock, "after">;
  readonly #refused = new Set<Subscription>();
  /** Called with one subject of each kind that is taken again. */
  onAgain: (subjects: readonly string[]) => void = () => {};
  #isTrying = false;
  #isStopped = false;
  #timer: Timer | null = null;
  #pauseMs = TRY_AGAIN_MS;

  constructor(connection: Pick<NatsConnection, "subscribe" | "flush">, clock: Pick<Clock, "after">) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /** Subscribes to a subject. Ends with the function that it returns. */
  add(subject: string, subscriber: Subscriber): () => void {
    const subscription: Subscription = { subject, subscriber, made: null };
    this.#make(subscription);
    return () => {
      this.#refused.delete(subscription);
      subscription.made?.unsubscribe();
    };
  }

  #make(subscription: Subscription): void {
    const { subject, subscriber } = subscription;
    const callback = (error: Error | null, message: NatsMessage): void => {
      if (error instanceof Error) this.#refuse(subscription, error.message);
      else subscriber.onMessage(message);
    };
    subscription.made = this.#connection.subscribe(subject, { callback });
  }

  #refuse(subscription: Subscription, why: string): void {
    subscription.made = null;
    // Behind those that were not tried since.
    if (!this.#refused.delete(subscription)) this.#trySoon();
    this.#refused.add(subscription);
    subscription.subscriber.onRefused?.(why);
    this.#tryLater();
  }

  #tryLater(): void {
    if (this.#isStopped || this.#refused.size === 0) return;
    this.#timer ??= this.#clock.after(this.#pauseMs, () => {
      this.#timer = null;
      const isNeeded = [...this.#refused].some(({ subscriber }) => subscriber.onRefused !== undefined);
      this.#pauseMs = isNeeded ? TRY_AGAIN_MS : Math.min(MAX_PAUSE_MS, this.#pauseMs * 2);
      void this.#tryRefused();
    });
  }

  /** Something has changed: the next try is not far. */
  #trySoon(): void {
    this.#pauseMs = TRY_AGAIN_MS;
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** Tries at once what was refused: another server may take it. Never rejects. */
  tryAgain(): Promise<void> {
    this.#trySoon();
    return this.#tryRefused();
  }

  /**
   * Tries what was refused: one subject of each kind, and the others of a kind that is taken. A front end may follow
   * thousands of streams, and a server logs each refusal. Never rejects.
   */
  async #tryRefused(): Promise<void> {
    if (this.#isTrying || this.#isStopped || this.#refused.size === 0) return;
    this.#isTrying = true;
    const firsts = new Map([...this.#refused].reverse().map((refused) => [kindOf(refused.subject), refused]));
    const taken = (await this.#try([...firsts.values()])).map(({ subject }) => subject);
    const kinds = new Set(taken.map(kindOf));
    await this.#try([...this.#refused].filter(({ subject }) => kinds.has(kindOf(subject))));
    this.#isTrying = false;
    if (taken.length > 0) {
      this.#trySoon();
      this.onAgain(taken);
    }
    this.#tryLater();
  }

  /** Subscribes, and returns what a server has taken. */
  async #try(tried: readonly Subscription[]): Promise<readonly Subscription[]> {
    if (tried.length === 0) return [];
    try {
      for (const subscription of tried) this.#make(subscription);
      // A server says what it refuses before it answers this.
      await this.#connection.flush();
    } catch {
      // The connection was lost: it is tried on the next.
      for (const subscription of tried) this.#giveUp(subscription);
      return [];
    }
    const taken = tried.filter((subscription) => subscription.made !== null && this.#refused.delete(subscription));
    for (const { subscriber } of taken) subscriber.onAgain?.();
    return taken;
  }

  #giveUp(subscription: Subscription): void {
    subscription.made?.unsubscribe();
    subscription.made = null;
  }

  /** Tries no more. */
  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }
}
