import type { TestScope } from "../helpers/process.js";

/** One line of the table: what was measured, and the most that it should be; `null` when it is only for information. */
export interface Figure {
  readonly what: string;
  readonly measured: number;
  readonly unit: string;
  readonly goal: number | null;
}

/** What a part of the measurement works with. */
export interface Setting {
  readonly scope: TestScope;
  /** An empty directory for data directories. */
  readonly root: string;
  readonly streams: number;
  readonly rounds: number;
}
