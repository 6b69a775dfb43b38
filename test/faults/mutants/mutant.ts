/** A line of the server that is wrong on purpose: the histories have to find it. */
export interface Mutant {
  /** What is wrong, in plain words. */
  readonly fault: string;
  /** The file, from `src/` on. */
  readonly file: string;
  /** What is there once, and what takes its place. */
  readonly code: string;
  readonly becomes: string;
  /** One whose history finds it. */
  readonly seed: number;
}
