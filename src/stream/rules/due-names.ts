/** Names that come due in the same minute are looked at together. */
const TICK_MS = 60_000;

/**
 * Names with a time at which each is due, of those that are due before `untilMs`. It holds at most so many: beyond that
 * it gives up the latest, and `untilMs` with them.
 */
export class DueNames {
  readonly #maxNames: number;
  readonly #ticks = new Map<number, Set<string>>();
  readonly #tickOf = new Map<string, number>();
  #untilTick = -Infinity;

  constructor(maxNames: number) {
    this.#maxNames = maxNames;
  }

  /** How many names wait. */
  get size(): number {
    return this.#tickOf.size;
  }

  /** Every name that is due before this was kept since the last `extend`; in milliseconds since 1970. */
  get untilMs(): number {
    return this.#untilTick * TICK_MS;
  }

  /** From now on names that are due before about `untilMs`, up to a minute earlier, are kept. */
  extend(untilMs: number): void {
    this.#untilTick = Math.floor(untilMs / TICK_MS);
  }

  /** Keeps `name`, or moves it to its new time. */
  add(name: string, dueMs: number): void {
    const tick = Math.ceil(dueMs / TICK_MS);
    this.remove(name);
    if (tick >= this.#untilTick) return;
    const names = this.#ticks.get(tick);
    if (names === undefined) this.#ticks.set(tick, new Set([name]));
    else names.add(name);
    this.#tickOf.set(name, tick);
    if (this.#tickOf.size > this.#maxNames) this.#giveUpLatest();
  }

  remove(name: string): void {
    const tick = this.#tickOf.get(name);
    if (tick === undefined) return;
    this.#tickOf.delete(name);
    const names = this.#ticks.get(tick);
    names?.delete(name);
    if (names?.size === 0) this.#ticks.delete(tick);
  }

  /** Takes the names that are due by now, a minute late at most, the earliest first. */
  take(nowMs: number): string[] {
    const due = [...this.#ticks.keys()].filter((tick) => tick * TICK_MS <= nowMs).sort((a, b) => a - b);
    const names = due.flatMap((tick) => [...(this.#ticks.get(tick) ?? [])]);
    for (const name of names) this.remove(name);
    return names;
  }

  #giveUpLatest(): void {
    const latest = Math.max(...this.#ticks.keys());
    for (const name of this.#ticks.get(latest) ?? []) this.#tickOf.delete(name);
    this.#ticks.delete(latest);
    this.#untilTick = latest;
  }
}
