// Says who a request comes from.

import type { Clock } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import type { Authentication, Caller } from "./rights/caller.js";
import type { Credentials } from "./rights/credentials.js";

/** Says who a request comes from, and what they may do (docs/auth.md). */
export abstract class Authority {
  static open(options: { file: string; clock: Clock; log: Log }): Promise<Authority> {
    throw new Error(options.file);
  }
  abstract authenticate(credentials: Credentials, name: string | null): Authentication | Promise<Authentication>;
  abstract renew(caller: Caller): Caller | null;
  abstract issueTicket(
    caller: Caller,
    wanted: { name: string; close: boolean; lifetimeMs: number | null },
  ): { kind: "ticket"; ticket: string; expiresAtMs: number } | { kind: "no-key" };
  abstract reload(): Promise<boolean>;
  abstract onChange(listener: () => void): () => void;
  abstract close(): void;
}
