// Who sent a request, and what an authentication comes to.

import type { Rate } from "../../net/rate.js";
import type { NameRange } from "../../protocol/names/name-range.js";
import type { Operation } from "./operation.js";

/** What allows an operation on a stream. */
export interface Right {
  /** Names the grant among all of its caller's: what has a rate of its own is counted by caller and grant. */
  readonly grant: number;
  /** `null` where the grant has no rate of its own. */
  readonly rate: Rate | null;
}

/** Who sent a request. */
export interface Caller {
  /**
   * Names the caller in logs, and where requests are counted (sender.ts), like `token ci` or `jwt https://id.example
   * alice`; never a secret. `null` for those who sent no credential: they are counted by address.
   */
  readonly id: string | null;
  /**
   * Stands for who asked the server for this ticket: what one asker's tickets send from one address counts together,
   * however many there are. Absent, or `null`, for everybody else.
   */
  readonly askedBy?: string | null;
  /** When the credential ends, in milliseconds since 1970; `Infinity` when it does not. */
  readonly endsAtMs: number;
  /** What allows `operation` on the stream `name`; `null` when nothing does. */
  rightTo(operation: Operation, name: string): Right | null;
  /** Whether there may be a stream on which something allows `operation`. */
  mayAnywhere(operation: Operation): boolean;
  /** Whether a grant allows `operation` on all streams, by the pattern `**`. */
  mayEverywhere(operation: Operation): boolean;
  /** Where the names are of all streams on which something may allow `operation`; in no order, some twice. */
  rangesOf(operation: Operation): readonly NameRange[];
}

/** Why there is no caller: the codes are those of the answers (docs/errors.md). */
export interface Unauthenticated {
  readonly kind: "unauthenticated";
  /** `credential-missing`: nobody may do that without one. `invalid-token`: it is wrong, unknown, over or revoked. */
  readonly code: "credential-missing" | "invalid-token";
  /** One sentence for people; says nothing about what is in the auth file. */
  readonly detail: string;
}

/** What an authentication comes to. */
export type Authentication = Caller | Unauthenticated;
