// Reads rates: so many requests and bytes a second.

/** What a client may do in a second. */
export interface Rate {
  readonly requests: number;
  /** `null` where only requests are limited. */
  readonly bytes: number | null;
}

const MAX_REQUESTS = 1_000_000_000;
/** By name in lower case. */
const BYTE_UNITS: ReadonlyMap<string, number> = new Map([
  ["gib", 2 ** 30],
  ["gb", 1e9],
  ["mib", 2 ** 20],
  ["mb", 1e6],
  ["kib", 1024],
  ["kb", 1e3],
  ["b", 1],
  ["", 1],
]);

/** Reads `REQUESTS[,BYTES]` a second, like `200` or `200,4MiB`; `null` when it is none. */
export function parseRate(text: string): Rate | null {
  const [, requests, amount, unit = ""] = /^(\d{1,10})(?:,(\d+(?:\.\d+)?)([A-Za-z]*))?$/.exec(text) ?? [];
  if (requests === undefined || Number(requests) < 1 || Number(requests) > MAX_REQUESTS) return null;
  if (amount === undefined) return { requests: Number(requests), bytes: null };
  const size = BYTE_UNITS.get(unit.toLowerCase());
  const bytes = size === undefined ? 0 : Math.round(Number(amount) * size);
  return bytes >= 1 && Number.isSafeInteger(bytes) ? { requests: Number(requests), bytes } : null;
}

/** What is wrong with a rate, or `null`; `off` is none. */
export function faultOfRate(value: unknown): string | null {
  if (typeof value === "string" && (value === "off" || parseRate(value) !== null)) return null;
  return "must be REQUESTS or REQUESTS,BYTES a second, like 200 or 200,4MiB, or off";
}
