// Tickets: short-lived rights to read one stream, for the query of a URL (docs/auth.md, Tickets).

import { createHmac } from "node:crypto";
import { base64UrlLength, decodeBase64Url } from "../protocol/base64url.js";
import { parseDecimal } from "../protocol/decimal.js";

/** Longest life of a ticket, in milliseconds. */
export const MAX_TICKET_LIFE_MS = 7 * 24 * 60 * 60_000;

/** The life of a ticket when nothing else is asked for, in milliseconds. */
export const DEFAULT_TICKET_LIFE_MS = 60 * 60_000;

/** Longest ticket, in characters. */
export const MAX_TICKET_CHARS = 512;

const VERSION = "v1";
const MAC_BYTES = 32;
const MAC_CHARS = base64UrlLength(MAC_BYTES);
const FORM = /^v1\.(\d{1,16})\.(rc?)\.([A-Za-z0-9-]{1,64}(?:~\d{1,16}(?:~[\w-]{1,64}){0,8})?)\.([\w-]+)$/;

/** A ticket, taken apart; nothing in it is to be believed before its MAC was compared. */
export interface Ticket {
  /** Seconds since 1970. */
  readonly expiresS: number;
  /** Whether it may close the stream, too. */
  readonly close: boolean;
  readonly kid: string;
  readonly keyId: string;
  /** When what was shown for it was made, in milliseconds; `null` where that is not known, or a backend signed it. */
  readonly issuedMs: number | null;
  /** Who asked for it. */
  readonly tags: readonly string[];
  readonly mac: Buffer;
}

/** What a ticket is signed for. */
export interface TicketContent {
  readonly expiresS: number;
  readonly close: boolean;
  readonly kid: string;
}

/** Why a ticket is refused. */
export type TicketFault = "malformed" | "signature" | "over" | "too-long" | "ended";

/** One sentence for whoever made it, or showed it. What is in the auth file is not told. */
export const TICKET_FAULTS: Readonly<Record<TicketFault, string>> = {
  malformed: `The ticket is not v1.<exp>.<r or rc>.<kid>.<HMAC> in at most ${MAX_TICKET_CHARS} characters.`,
  signature: "The ticket's HMAC does not hold: it is for another stream, or no key of this server has signed it.",
  over: "The ticket is over: ask for another.",
  "too-long": "The ticket's exp is more than 7 days from now; it counts seconds.",
  ended: "The ticket is revoked, or its key or who asked for it may no longer do what it is for.",
};

/** Takes a ticket apart; `null` for anything else. */
export function parseTicket(text: string): Ticket | null {
  if (text.length > MAX_TICKET_CHARS) return null;
  const [, expires = "", operations, kid = "", encodedMac = ""] = FORM.exec(text) ?? [];
  const expiresS = parseDecimal(expires);
  const [keyId = "", issued, ...tags] = kid.split("~");
  const issuedS = issued === undefined ? null : parseDecimal(issued);
  const mac = encodedMac.length === MAC_CHARS ? decodeBase64Url(encodedMac) : null;
  if (mac === null || expiresS === null || (issued !== undefined && issuedS === null)) return null;
  // Nothing is from then: what says so does not know when it was made.
  const issuedMs = issuedS === null || issuedS === 0 ? null : issuedS * 1000;
  return { expiresS, close: operations === "rc", kid, keyId, issuedMs, tags, mac };
}

/** The MAC of a ticket for the stream `name`. */
export function ticketMac(secret: Buffer, content: TicketContent, name: string): Buffer {
  return createHmac("sha256", secret)
    .update(`${headOf(content)}.${name}`)
    .digest();
}

/** Signs a ticket for the stream `name`. */
export function signTicket(secret: Buffer, content: TicketContent, name: string): string {
  return `${headOf(content)}.${ticketMac(secret, content, name).toString("base64url")}`;
}

function headOf({ expiresS, close, kid }: TicketContent): string {
  return `${VERSION}.${expiresS}.${close ? "rc" : "r"}.${kid}`;
}
