import type { Clock } from "../../src/ops/clock.js";
import type { Random } from "./random.js";
import { QUIET_TURNS } from "./watched-files.js";

/** How long a call takes that the disk is slow with, in milliseconds. */
const SLOW_MS = [100, 400, 1000, 2500, 10_000];

/**
 * Runs tasks in an order and with delays that a seed decides: each turn of the event loop takes those whose time has
 * come. The same calls and the same seed give the same order, so that a failing one can be looked at again.
 */
export class DiskScheduler {
  readonly #random: Random;
  readonly #tasks = new Map<number, (() => void)[]>();
  /** The most turns that a task usually waits; at 0 each has its turn at once, in order. */
  maxDelayTurns = 3;
  /** The part of the tasks that take up to seconds of `clock`'s time. */
  slowPart = 0;
  clock: Clock | null = null;
  #turn = 0;
  #waiting = 0;
  /** Tasks taken in so far. */
  #added = 0;
  #clears = 0;
  #scheduled = false;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Takes `task` in; it waits `moreTurns` longer than others. */
  add(task: () => void, moreTurns = 0): void {
    const { clock } = this;
    if (clock === null || this.slowPart === 0 || !this.#random.chance(this.slowPart)) return this.#addSoon(task, moreTurns);
    const clears = this.#clears;
    clock.after(this.#random.pick(SLOW_MS), () => {
      if (clears === this.#clears) this.#addSoon(task, moreTurns);
    });
  }

  /** Waits until nothing waits, and nobody asks for more. Tasks that wait for the clock do not count. */
  async idle(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS;) {
      const before = this.#added;
      await new Promise<void>((resolve) => setImmediate(resolve));
      quiet = this.#waiting === 0 && this.#added === before ? quiet + 1 : 0;
    }
  }

  /** Forgets everything that waits. */
  clear(): void {
    this.#tasks.clear();
    this.#waiting = 0;
    this.#clears += 1;
  }

  #addSoon(task: () => void, moreTurns: number): void {
    const due = this.#turn + 1 + this.#delayTurns() + moreTurns;
    const tasks = this.#tasks.get(due);
    if (tasks === undefined) this.#tasks.set(due, [task]);
    else tasks.push(task);
    this.#waiting += 1;
    this.#added += 1;
    this.#schedule();
  }

  #delayTurns(): number {
    if (this.maxDelayTurns === 0) return 0;
    const isLate = this.#random.chance(0.05);
    return this.#random.integer(0, isLate ? this.maxDelayTurns * 6 : this.maxDelayTurns);
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting === 0) return;
    this.#scheduled = true;
    setImmediate(() => this.#takeTurn());
  }

  #takeTurn(): void {
    this.#scheduled = false;
    this.#turn += 1;
    const tasks = this.#tasks.get(this.#turn);
    if (tasks !== undefined) this.#run(tasks);
    this.#schedule();
  }

  #run(tasks: (() => void)[]): void {
    this.#tasks.delete(this.#turn);
    const clears = this.#clears;
    for (const task of this.#random.shuffle(tasks)) {
      // A crash among the tasks of this turn has taken the rest of them away.
      if (clears !== this.#clears) return;
      this.#waiting -= 1;
      task();
    }
  }
}
