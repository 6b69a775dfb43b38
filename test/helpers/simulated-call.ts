import { errorOf } from "./watched-files.js";

/** The system errors that a call can be made to fail with. */
export type FaultCode = "EIO" | "ENOSPC" | "EMFILE";

/** An error as node:fs makes it. */
export class SystemError extends Error {
  readonly code: string;
  readonly errno?: number;

  constructor(code: string, call: string, path: string) {
    super(`${code}: ${call} '${path}'`);
    this.code = code;
    const { errno } = errorOf(code);
    if (errno !== undefined) this.errno = errno;
  }
}

/** One call on its way: it takes effect some time after it was made, and is answered some time after that. */
export interface Call<T> {
  readonly name: string;
  readonly path: string;
  /** Whether it needs room on the disk, which it can fail for. */
  readonly needsRoom?: () => boolean;
  readonly effect: () => T;
  /** What it does before it fails in the middle. */
  readonly partly?: () => void;
  /** What is true by the time it is answered. */
  readonly finish?: () => void;
}
