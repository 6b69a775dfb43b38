// Refuses requests of clients that send too many.

import type { Caller, Right } from "../../auth/rights/caller.js";
import { senderOf } from "../../auth/rights/sender.js";
import { parseRate, type Rate } from "../../net/rate.js";
import type { Clock } from "../../ops/clock.js";
import { RateLimiter } from "../bounds/rate-limiter.js";
import { problem, type Problem } from "../encoding/problems.js";
import type { Account, Exchange } from "../exchange/exchange.js";

/** Counts requests, and the bytes that they bring and are sent, by caller or address. */
export class RequestRates {
  readonly #own: Rate | null;
  readonly #limiter: RateLimiter;
  readonly #clock: Clock;

  /** `rateLimit` is `REQUESTS[,BYTES]` a second, or `off`. */
  constructor(rateLimit: string, clock: Clock) {
    this.#own = rateLimit === "off" ? null : parseRate(rateLimit);
    this.#limiter = new RateLimiter(this.#own);
    this.#clock = clock;
  }

  /**
   * Counts a request; why it is refused, or `null` when it may go on, and then its bytes are charged to its
   * {@link Exchange.account}. It counts for `caller`, or for its address where there is none: nobody was
   * asked for a credential, or it was wrong. What `right` has a rate of its own for has buckets of its own.
   */
  refusalOf(exchange: Exchange, caller: Pick<Caller, "id" | "askedBy"> | null, right: Right | null): Problem | null {
    const rate = right?.rate ?? null;
    const limit = rate ?? this.#own;
    if (limit === null) return null;
    const sender = senderOf(caller, exchange.client);
    const key = right === null || rate === null ? sender : `${sender}\n${right.grant}`;
    const seconds = this.#limiter.admit(key, rate, this.#clock.nowMs());
    if (seconds > 0) return tooMuch(limit, seconds);
    if (limit.bytes !== null) exchange.account = new KeyAccount(this.#limiter, this.#clock, key, rate);
    return null;
  }

  /**
   * Why a credential is not verified, as the address that it comes from has sent too much that was wrong; `null` when
   * it may be. Counts nothing.
   */
  refusalOfUnknown(exchange: Exchange): Problem | null {
    if (this.#own === null) return null;
    const seconds = this.#limiter.waitOf(exchange.client, this.#clock.nowMs());
    return seconds > 0 ? tooMuch(this.#own, seconds) : null;
  }
}

class KeyAccount implements Account {
  readonly #limiter: RateLimiter;
  readonly #clock: Clock;
  readonly #key: string;
  readonly #rate: Rate | null;

  constructor(limiter: RateLimiter, clock: Clock, key: string, rate: Rate | null) {
    this.#limiter = limiter;
    this.#clock = clock;
    this.#key = key;
    this.#rate = rate;
  }

  charge(bytes: number): void {
    this.#limiter.charge(this.#key, this.#rate, bytes, this.#clock.nowMs());
  }
}

function tooMuch({ requests, bytes }: Rate, retryAfterSeconds: number): Problem {
  const ofBytes = bytes === null ? "" : `, and ${bytes} bytes`;
  return problem("rate-limited", {
    retryAfterSeconds,
    detail: `The limit is ${requests} requests a second${ofBytes}.`,
  });
}
