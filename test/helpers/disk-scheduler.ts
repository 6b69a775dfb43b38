import type { Random } from "./random.js";

/**
 * Runs tasks in an order and with delays that a seed decides: each turn of the event loop takes those whose time has
 * come. The same calls and the same seed give the same order, so that a failing one can be looked at again.
 */
export class DiskScheduler {
  readonly #random: Random;
  readonly #tasks = new Map<number, (() => void)[]>();
  /** How slow the disk is: the most turns that a task usually waits. */
  maxDelayTurns = 3;
  #turn = 0;
  #waiting = 0;
  #clears = 0;
  #scheduled = false;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Whether nothing waits. */
  get idle(): boolean {
    return this.#waiting === 0;
  }

  add(task: () => void): void {
    const isSlow = this.#random.chance(0.05);
    const due = this.#turn + 1 + this.#random.integer(0, isSlow ? this.maxDelayTurns * 6 : this.maxDelayTurns);
    const tasks = this.#tasks.get(due);
    if (tasks === undefined) this.#tasks.set(due, [task]);
    else tasks.push(task);
    this.#waiting += 1;
    this.#schedule();
  }

  /** Forgets everything that waits. */
  clear(): void {
    this.#tasks.clear();
    this.#waiting = 0;
    this.#clears += 1;
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#turn += 1;
      const tasks = this.#tasks.get(this.#turn) ?? [];
      this.#tasks.delete(this.#turn);
      const clears = this.#clears;
      for (const task of this.#random.shuffle(tasks)) {
        // A crash among the tasks of this turn has taken the rest of them away.
        if (clears !== this.#clears) break;
        this.#waiting -= 1;
        task();
      }
      this.#schedule();
    });
  }
}
