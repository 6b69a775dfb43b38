/** One line of a picture. */
export interface Line {
  readonly name: string;
  readonly points: readonly Point[];
}

/** What was measured at one place of the axis. */
export interface Point {
  /** How the place is called: `1,000`, `1 GiB`. */
  readonly label: string;
  readonly value: number;
}

/** Lines over the same places. */
export interface Curves {
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly Line[];
}
