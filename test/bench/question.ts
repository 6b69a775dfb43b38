import type { Curves } from "./curves.js";
import type { Rig } from "./rig.js";

/** Another server's figure, in the unit of the line that it stands in. */
export interface RivalFigure {
  readonly name: string;
  readonly value: number;
}

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
  /** The rivals that are installed and can be asked the same. */
  readonly rivals?: readonly RivalFigure[];
}

/** What a question is answered. */
export interface Findings {
  readonly figures: readonly Figure[];
  /** Drawn in the second picture. */
  readonly curves?: Curves;
}

/** What it is answered where the machine can't tell: why. */
export interface NotAsked {
  readonly notAsked: string;
}

/** Something that is asked of the server's speed. */
export interface Question {
  readonly id: string;
  readonly title: string;
  /** The load, in the words of the table. */
  readonly load: string;
  ask(rig: Rig): Promise<Findings | NotAsked>;
}

/** Whether a figure is what it should be. */
export function isReached({ goal, ratio, ours }: Figure): boolean {
  if (goal === null) return true;
  const value = ratio ?? ours;
  return goal.kind === "atLeast" ? value >= goal.value : value <= goal.value;
}

/** A figure that is compared with the yardstick. */
export function compared(
  what: string,
  unit: string,
  {
    ours,
    yardstick,
    ratio,
    rivals = [],
  }: { readonly ours: number; readonly yardstick: number; readonly ratio: number; readonly rivals?: readonly RivalFigure[] },
  atLeast: number,
): Figure {
  return { what, unit, ours, yardstick, ratio, rivals, goal: { kind: "atLeast", value: atLeast } };
}

/** A figure that stands for itself, with the most that it should be; `null` when it is only reported. */
export function absolute(what: string, unit: string, ours: number, atMost: number | null): Figure {
  return { what, unit, ours, yardstick: null, ratio: null, goal: atMost === null ? null : { kind: "atMost", value: atMost } };
}
