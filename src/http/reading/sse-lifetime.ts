// How long an event stream lasts.

import type { Context } from "../context/context.js";

/** The random part of a connection's lifetime, so that readers that came together do not reconnect together. */
const LIFETIME_JITTER = 0.1;
/** The number of different lifetimes: Node keeps a list of timers for each. */
const LIFETIMES = 64;

/** The lifetime of one connection, in milliseconds: about `--sse-lifetime`, up to a tenth more or less. */
export function lifetimeOf({ random, settings }: Pick<Context, "random" | "settings">): number {
  const chance = Math.floor(random() * LIFETIMES) / LIFETIMES;
  return settings.sseLifetimeMs * (1 + LIFETIME_JITTER * (2 * chance - 1));
}
