import type { Rig } from "./rig.js";

/** One line of the table. */
export interface Figure {
  /** What was asked, when a question has several answers. */
  readonly what: string;
  readonly unit: string;
  readonly ours: number;
  /** `null` where there is none: the figure stands for itself. */
  readonly yardstick: number | null;
  /** Ours in relation to the yardstick, or to what the question compares with. */
  readonly ratio: number | null;
  /** The least, or the most, that `ratio` should be (or `ours`, where there is none); `null` when it is only reported. */
  readonly goal: { readonly kind: "atLeast" | "atMost"; readonly value: number } | null;
}

/** Something that is asked of the server's speed. */
export interface Question {
  readonly id: string;
  readonly title: string;
  /** The load, in the words of the table. */
  readonly load: string;
  ask(rig: Rig): Promise<readonly Figure[]>;
}

/** Whether a figure is what it should be. */
export function isReached({ goal, ratio, ours }: Figure): boolean {
  if (goal === null) return true;
  const value = ratio ?? ours;
  return goal.kind === "atLeast" ? value >= goal.value : value <= goal.value;
}

/** A figure that is compared with the yardstick. */
export function compared(what: string, unit: string, { ours, yardstick, ratio }: { readonly ours: number; readonly yardstick: number; readonly ratio: number }, atLeast: number): Figure {
  return { what, unit, ours, yardstick, ratio, goal: { kind: "atLeast", value: atLeast } };
}
