import type { Caller } from "./caller.js";

/** Whom the requests of `caller` from `address` count for; `null` is who showed nothing, or something wrong. */
export function senderOf(caller: Pick<Caller, "id" | "askedBy"> | null, address: string): string {
  if (caller === null || caller.id === null) return address;
  const askedBy = caller.askedBy ?? null;
  return askedBy === null ? caller.id : `${askedBy} ${address}`;
}
