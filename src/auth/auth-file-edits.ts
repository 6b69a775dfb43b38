// Changes an auth file from the command line: checked whole before and after, and put in place at once.

import { randomBytes } from "node:crypto";
import { formatTimestamp } from "../protocol/timestamp.js";
import { withFileLock } from "../ops/lock/file-lock.js";
import { replaceFile, WatchedFile } from "../ops/watched-file.js";
import { parseAuthFile } from "./auth-file.js";
import type { AuthFile, RevocationEntry } from "./auth-file.js";
import { AUTH_BOUNDS } from "./bounds.js";
import { AuthFileError } from "./checked-json.js";
import { MIN_SECRET_BYTES } from "./jwt/verification-key.js";
import { Revocations } from "./revocations.js";
import { Grants } from "./rights/grant.js";
import type { Grant } from "./rights/grant.js";
import { MAX_TICKET_LIFE_MS, signTicket } from "./ticket.js";
import { TICKET_LEEWAY_MS } from "./tickets.js";
import { makeToken } from "./token.js";

/** How often a change begins again because somebody else has changed the file. */
const MAX_ROUNDS = 10;

/** No ticket that was asked for before a revocation is valid for longer after it. */
const TICKETS_OVER_MS = MAX_TICKET_LIFE_MS + TICKET_LEEWAY_MS;

/** A token to be made. */
export interface NewToken {
  readonly id: string;
  readonly streams: readonly string[];
  readonly allow: readonly string[];
  /** `null` for one that does not end. */
  readonly lifetimeMs: number | null;
}

/** A token as it is listed: never with its secret. */
export interface ListedToken {
  readonly id: string;
  readonly state: "valid" | "over" | "revoked";
  /** `null` where the file does not say. */
  readonly created: string | null;
  /** `null` where it does not end. */
  readonly expires: string | null;
  readonly grants: readonly Grant[];
}

/** A ticket to be signed. */
export interface NewTicket {
  readonly name: string;
  readonly close: boolean;
  readonly lifetimeMs: number;
  /** `null` for the first key that may. */
  readonly keyId: string | null;
}

/** The document as it is written again: what is not changed stays as it stood. */
interface Document {
  tokens?: { readonly id: string }[];
  ticketKeys?: unknown[];
  revoked?: { readonly id?: string }[];
}

/**
 * Adds a token and returns it: it can't be had again. Makes the file, for its owner alone, where there is none. Rejects
 * with {@link AuthFileError} when the id is taken, or the file would not be valid.
 */
export async function addToken(
  path: string,
  { id, streams, allow, lifetimeMs }: NewToken,
  nowMs: number,
): Promise<string> {
  const { token, hash } = makeToken(id);
  await edit(path, (document, file) => {
    const { tokens, revoked } = file;
    dropSpentRevocations(document, file, nowMs);
    if (tokens.some((entry) => entry.id === id))
      throw new AuthFileError(`${path} has a token ${id} already: revoke it first, or choose another id`);
    const createdMs = Math.max(nowMs, ...revocationsOf(revoked, id).map(({ beforeMs }) => beforeMs));
    if (createdMs === Infinity)
      throw new AuthFileError(
        `${path} revokes every token ${id}: choose another id, or give the revocation a "before"`,
      );
    const times = {
      created: formatTimestamp(createdMs),
      ...(lifetimeMs === null ? {} : { expires: formatTimestamp(nowMs + lifetimeMs) }),
    };
    const entry = { id, sha256: hash.toString("hex"), ...times, grants: [{ streams, allow }] };
    document.tokens = [...(document.tokens ?? []), entry];
  });
  return token;
}

/** The tokens of a file, in its order. */
export async function listTokens(path: string, nowMs: number): Promise<ListedToken[]> {
  const { tokens, revoked } = parseAuthFile({ file: path, text: await readAuthFile(path) });
  const revocations = new Revocations(revoked);
  return tokens.map(({ id, createdMs, expiresMs, grants }) => ({
    id,
    state: revocations.has("id", id, createdMs) ? "revoked" : nowMs >= expiresMs ? "over" : "valid",
    created: createdMs === null ? null : formatTimestamp(createdMs),
    expires: expiresMs === Infinity ? null : formatTimestamp(expiresMs),
    grants,
  }));
}

/**
 * Takes a token out, and revokes what was made with its id up to now: the tickets that it asked for end with it, and a
 * new token may have the id. Rejects with {@link AuthFileError} when there is no such token.
 */
export async function revokeToken(path: string, id: string, nowMs: number): Promise<void> {
  await edit(path, (document, file) => {
    const { tokens, revoked } = file;
    dropSpentRevocations(document, file, nowMs);
    const entry = tokens.find((token) => token.id === id);
    if (entry === undefined) throw new AuthFileError(`${path} has no token ${id}`);
    // After its making, also if both happened in one millisecond.
    const beforeMs = Math.max(
      nowMs,
      (entry.createdMs ?? nowMs) + 1,
      ...revocationsOf(revoked, id).map((one) => one.beforeMs),
    );
    const rest = document.tokens?.filter((token) => token.id !== id) ?? [];
    if (rest.length === 0) delete document.tokens;
    else document.tokens = rest;
    const revocation = beforeMs === Infinity ? { id } : { id, before: formatTimestamp(beforeMs) };
    document.revoked = [...(document.revoked?.filter((one) => one.id !== id) ?? []), revocation];
  });
}

/**
 * Adds a key that signs tickets for everything, in front of the other keys that do: the first that may signs, and the
 * others stay until their last ticket is over. Keys with grants before those go on signing for their streams; resolves
 * to the ids of these. Rejects with {@link AuthFileError} when the id is taken.
 */
export async function addTicketKey(path: string, id: string): Promise<readonly string[]> {
  let before: readonly string[] = [];
  await edit(path, (document, { ticketKeys }) => {
    if (ticketKeys.some((key) => key.id === id)) throw new AuthFileError(`${path} has a ticket key ${id} already`);
    const secret = randomBytes(MIN_SECRET_BYTES).toString("base64url");
    const unlimited = ticketKeys.findIndex(({ grants }) => grants === null);
    const at = unlimited === -1 ? ticketKeys.length : unlimited;
    const keys = document.ticketKeys ?? [];
    document.ticketKeys = [...keys.slice(0, at), { id, secret }, ...keys.slice(at)];
    before = ticketKeys.slice(0, at).map((key) => key.id);
  });
  return before;
}

/** Signs a ticket with a key of the file; `null` where it has none that may. */
export async function signTicketOf(path: string, wanted: NewTicket, nowMs: number): Promise<string | null> {
  const { name, close, lifetimeMs, keyId } = wanted;
  const { ticketKeys } = parseAuthFile({ file: path, text: await readAuthFile(path) });
  const key = ticketKeys.find(({ id, grants }) => {
    const limits = grants === null ? null : new Grants(grants, null);
    const may = (operation: "read" | "close"): boolean => limits === null || limits.rightTo(operation, name) !== null;
    return (keyId === null || keyId === id) && may("read") && (!close || may("close"));
  });
  if (key === undefined) return null;
  const expiresS = Math.floor((nowMs + Math.min(lifetimeMs, MAX_TICKET_LIFE_MS)) / 1000);
  return signTicket(key.secret, { expiresS, close, kid: key.id }, name);
}

function revocationsOf(revoked: readonly RevocationEntry[], id: string): RevocationEntry[] {
  return revoked.filter(({ kind, value }) => kind === "id" && value === id);
}

/**
 * Takes out what ends nothing any more: no token has its id, and the tickets from before it are over. Each revocation
 * leaves an entry, and in a file that is full of them no token could be revoked.
 */
function dropSpentRevocations(document: Document, { tokens, revoked }: AuthFile, nowMs: number): void {
  const ids = new Set(tokens.map(({ id }) => id));
  const isSpent = ({ kind, value, beforeMs }: RevocationEntry): boolean =>
    kind === "id" && !ids.has(value) && beforeMs < nowMs - TICKETS_OVER_MS;
  const spent = revoked.map(isSpent);
  const left = document.revoked?.filter((_, at) => spent[at] !== true) ?? [];
  if (left.length === 0) delete document.revoked;
  else document.revoked = left;
}

type Change = (document: Document, file: AuthFile) => void;

/**
 * Only one command at a time changes a file. An editor knows nothing of that: what it has saved meanwhile is read
 * again, and not overwritten.
 */
async function edit(path: string, change: Change): Promise<void> {
  await asAuthFileError(path, () =>
    withFileLock(path, async () => {
      let text = await readAuthFile(path, "{}");
      for (let rounds = 0; ; rounds++) {
        const next = changed(path, text, change);
        const now = await readAuthFile(path, "{}");
        if (now === text) return replaceFile(path, next);
        if (rounds === MAX_ROUNDS) throw new AuthFileError(`${path} changes all the time: nothing was done`);
        text = now;
      }
    }),
  );
}

/** The text of a file after a change. */
function changed(path: string, text: string, change: Change): string {
  const file = parseAuthFile({ file: path, text });
  const document = JSON.parse(text) as Document; // parseAuthFile has checked that it is one
  change(document, file);
  const next = `${JSON.stringify(document, null, 2)}\n`;
  if (Buffer.byteLength(next) > AUTH_BOUNDS.fileBytes)
    throw new AuthFileError(`${path} would have more than ${AUTH_BOUNDS.fileBytes} bytes`);
  parseAuthFile({ file: path, text: next });
  return next;
}

/** The text of the file, or `absent` where there is none. */
async function readAuthFile(path: string, absent?: string): Promise<string> {
  return asAuthFileError(path, async () => {
    try {
      return await WatchedFile.read(path, AUTH_BOUNDS.fileBytes);
    } catch (error) {
      if (absent !== undefined && error instanceof Error && "code" in error && error.code === "ENOENT") return absent;
      throw error;
    }
  });
}

async function asAuthFileError<T>(path: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof AuthFileError || !(error instanceof Error)) throw error;
    throw new AuthFileError(`${path}: ${error.message}`);
  }
}
