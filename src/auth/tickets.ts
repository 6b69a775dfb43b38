// Who has a ticket, and who gets one.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { onlyName, type NameRange } from "../protocol/names/name-range.js";
import type { IssuerEntry, TicketKeyEntry } from "./auth-file.js";
import type { ClientAuthorities } from "./client-authorities.js";
import type { KeySource } from "./jwt/key-source.js";
import { KnownCaller } from "./known-caller.js";
import type { Basis, Rights } from "./known-caller.js";
import { isSecretTag, isTagOf, secretTagOf, tagOf } from "./revocations.js";
import type { Revocations } from "./revocations.js";
import type { Caller, Right } from "./rights/caller.js";
import type { ClientCertificate } from "./rights/credentials.js";
import { Grants } from "./rights/grant.js";
import type { Grant } from "./rights/grant.js";
import type { Operation } from "./rights/operation.js";
import { DEFAULT_TICKET_LIFE_MS, MAX_TICKET_LIFE_MS, parseTicket, signTicket, ticketMac } from "./ticket.js";
import type { Ticket, TicketFault } from "./ticket.js";
import type { Tokens } from "./token.js";

/** How far the clock of a backend that signs tickets may be ahead, in milliseconds. */
export const TICKET_LEEWAY_MS = 60_000;

/** The tag of tickets for those who showed no credential. */
const PUBLIC_TAG = "p";
/** Of all credentials of one user some tags are the same: who it is, and who says so. */
const NAMING_TAGS = [PUBLIC_TAG, "i", "s", "u", "c"];
/** The tag of a rate: the number of its grant, its requests a second, and its bytes where they are limited. */
const RATE_TAG = /^r(\d+)-(\d+)-(\d*)$/;
const FULL_RIGHT: Right = { grant: 0, rate: null };

interface Key {
  readonly id: string;
  readonly secret: Buffer;
  /** Says whether the key is still the same. */
  readonly print: string;
  /** `null` where it may sign for everything. */
  readonly limits: Grants | null;
}

/** What a ticket is asked for. */
export interface WantedTicket {
  readonly name: string;
  readonly close: boolean;
  /** `null` for the usual life. */
  readonly lifetimeMs: number | null;
}

/** What comes of asking for a ticket. */
export type IssuedTicket =
  { readonly kind: "ticket"; readonly ticket: string; readonly expiresAtMs: number } | { readonly kind: "no-key" };

/** An issuer of JWTs, as far as the tickets depend on it that they ask for. */
export type TicketIssuer = Omit<IssuerEntry, "keys"> & { readonly keys: Pick<KeySource, "has" | "known"> };

/** What tickets depend on beside their keys. */
export interface TicketGround {
  readonly tokens: Tokens;
  readonly revocations: Revocations;
  readonly issuers: ReadonlyMap<string, TicketIssuer>;
  /** What certificates allow; `null` where none counts. */
  readonly certificates: readonly Grant[] | null;
  readonly clientAuthorities: ClientAuthorities;
  /** `null` where nobody may do anything without a credential. */
  readonly publicCaller: KnownCaller | null;
}

/** The tickets of an auth file. */
export class Tickets {
  readonly #keys: ReadonlyMap<string, Key>;
  readonly #ground: TicketGround;
  readonly #issuersByTag: ReadonlyMap<string, TicketIssuer>;
  readonly #certificatesTag: string | null;
  /** What is signed with where the key is not there. */
  readonly #nobody = randomBytes(32);

  constructor(entries: readonly TicketKeyEntry[], ground: TicketGround) {
    this.#ground = ground;
    this.#issuersByTag = new Map(Array.from(ground.issuers.values(), (issuer) => [termsTagOf(issuer), issuer]));
    this.#certificatesTag = ground.certificates === null ? null : certificatesTagOf(ground.certificates);
    this.#keys = new Map(
      entries.map(({ id, secret, grants }) => [
        id,
        { id, secret, print: printOf(secret), limits: grants === null ? null : new Grants(grants, null) },
      ]),
    );
  }

  /**
   * Whose ticket for the stream `name` it is, or why it does not count. A promise, which never rejects, only where
   * the keys of the issuer must be fetched whose JWT it was asked for with.
   */
  authenticate(
    text: string,
    name: string,
    nowMs: number,
  ): KnownCaller | TicketFault | Promise<KnownCaller | TicketFault> {
    const ticket = parseTicket(text);
    if (ticket === null) return "malformed";
    const key = this.#keys.get(ticket.keyId);
    const mac = ticketMac(key?.secret ?? this.#nobody, ticket, name);
    if (!timingSafeEqual(mac, ticket.mac) || key === undefined) return "signature";
    const keysKnown = this.#issuerOf(ticket.tags)?.keys.known() ?? null;
    if (keysKnown === null) return this.#callerOf(ticket, key, name, nowMs);
    return keysKnown.then(() => this.#callerOf(ticket, key, name, nowMs));
  }

  /** Who had a ticket; `null` when it no longer counts. */
  renew({ ticket, name, keyPrint }: Extract<Basis, { kind: "ticket" }>, nowMs: number): KnownCaller | null {
    const key = this.#keys.get(ticket.keyId);
    if (key === undefined || key.print !== keyPrint) return null;
    const caller = this.#callerOf(ticket, key, name, nowMs);
    return caller instanceof KnownCaller ? caller : null;
  }

  /**
   * Issues a ticket to one who was asked for its rights before. It is as old as what was shown for it, so that what
   * ends the one by its age ends the other; where that does not say how old it is, every revocation counts.
   */
  issue(caller: Caller, basis: Basis | null, { name, close, lifetimeMs }: WantedTicket, nowMs: number): IssuedTicket {
    const key = this.#keyFor(basis, close ? ["read", "close"] : ["read"], name);
    if (key === null) return { kind: "no-key" };
    const lifeMs = Math.min(lifetimeMs ?? DEFAULT_TICKET_LIFE_MS, MAX_TICKET_LIFE_MS);
    const expiresS = Math.floor(Math.min(nowMs + lifeMs, caller.endsAtMs) / 1000);
    const kid =
      basis?.kind === "ticket"
        ? basis.ticket.kid
        : [
            key.id,
            Math.floor(madeMs(basis, nowMs) / 1000),
            ...this.#tagsOf(basis),
            ...rateTagsOf(caller, basis, name),
          ].join("~");
    const ticket = signTicket(key.secret, { expiresS, close, kid }, name);
    return { kind: "ticket", ticket, expiresAtMs: expiresS * 1000 };
  }

  /** The first key that may sign for it; for one who came with a ticket, the key of that one. */
  #keyFor(basis: Basis | null, operations: readonly Operation[], name: string): Key | null {
    for (const key of this.#keys.values()) {
      if (basis?.kind === "ticket" && basis.ticket.keyId !== key.id) continue;
      if (operations.every((operation) => key.limits === null || key.limits.rightTo(operation, name) !== null))
        return key;
    }
    return null;
  }

  #callerOf(ticket: Ticket, key: Key, name: string, nowMs: number): KnownCaller | TicketFault {
    const expiresMs = ticket.expiresS * 1000;
    if (nowMs >= expiresMs) return "over";
    if (expiresMs > nowMs + MAX_TICKET_LIFE_MS + TICKET_LEEWAY_MS) return "too-long";
    const askers = this.#askersOf(ticket, nowMs);
    if (askers === null) return "ended";
    const rights = new TicketRights(ticket, name, [...askers, ...(key.limits === null ? [] : [key.limits])]);
    if (rights.rightTo("read", name) === null) return "ended";
    const endsAtMs = Math.min(expiresMs, ...askers.map((asker) => asker.endsAtMs));
    const id = `ticket ${key.id} ${printOf(ticket.mac).slice(0, 12)}`;
    const basis = { kind: "ticket", ticket, name, keyPrint: key.print } as const;
    return new KnownCaller(id, endsAtMs, rights, basis, askedBy(ticket));
  }

  /** Those whose rights bound the ticket's; `null` when one of those that asked for it no longer counts. */
  #askersOf({ tags, issuedMs }: Ticket, nowMs: number): KnownCaller[] | null {
    const { tokens, revocations, publicCaller } = this.#ground;
    const askers: KnownCaller[] = [];
    for (const tag of tags) {
      if (revocations.hasTag(tag, issuedMs) || !this.#stands(tag, tags)) return null;
      if (tag !== PUBLIC_TAG && !tag.startsWith("i")) continue;
      const asker = tag === PUBLIC_TAG ? publicCaller : tokens.byTag(tag, nowMs);
      if (asker === null) return null;
      askers.push(asker);
    }
    return askers;
  }

  /** Whether the auth file still has what a tag stands for, as it was. */
  #stands(tag: string, tags: readonly string[]): boolean {
    const { tokens, clientAuthorities } = this.#ground;
    if (isSecretTag(tag)) return tokens.hasSecret(tag);
    if (isTagOf("issuer", tag)) return this.#issuersByTag.has(tag);
    if (isTagOf("key", tag)) return this.#issuerOf(tags)?.keys.has((print) => tagOf("key", print) === tag) === true;
    if (isTagOf("authority", tag)) return clientAuthorities.hasTag(tag);
    return !isTagOf("certificates", tag) || tag === this.#certificatesTag;
  }

  /** The issuer of the JWT that a ticket was asked for with; `null` for other tickets, and where it is no more. */
  #issuerOf(tags: readonly string[]): TicketIssuer | null {
    for (const tag of tags) {
      const issuer = this.#issuersByTag.get(tag);
      if (issuer !== undefined) return issuer;
    }
    return null;
  }

  #tagsOf(basis: Basis | null): readonly string[] {
    switch (basis?.kind) {
      case "token":
        return [tagOf("id", basis.id), secretTagOf(basis.id, basis.hash)];
      case "jwt":
        return this.#tagsOfJwt(basis);
      case "certificate":
        return this.#tagsOfCertificate(basis.certificate);
      case "public":
        return [PUBLIC_TAG];
      default:
        return [];
    }
  }

  #tagsOfJwt({ jwt, sub, jti }: Extract<Basis, { kind: "jwt" }>): readonly string[] {
    const issuer = this.#ground.issuers.get(jwt.iss);
    return [
      // Without its issuer it does not stand.
      issuer === undefined ? tagOf("issuer", jwt.iss) : termsTagOf(issuer),
      tagOf("key", jwt.keyPrint),
      ...(sub === null ? [] : [tagOf("sub", sub)]),
      ...(jti === null ? [] : [tagOf("jti", jti)]),
    ];
  }

  #tagsOfCertificate(certificate: ClientCertificate): readonly string[] {
    const signer = this.#ground.clientAuthorities.signerOf(certificate);
    const tags = [certificatesTagOf(this.#ground.certificates ?? []), tagOf("sub", certificate.name)];
    return signer === null ? tags : [...tags, tagOf("authority", signer)];
  }
}

/** The rights of a ticket: to one stream, and to no more than those that it comes from. */
class TicketRights implements Rights {
  readonly #close: boolean;
  readonly #name: string;
  readonly #bounds: readonly Rights[];
  readonly #own: Right | null;

  constructor(ticket: Ticket, name: string, bounds: readonly Rights[]) {
    this.#close = ticket.close;
    this.#name = name;
    this.#bounds = bounds;
    this.#own = rateRightOf(ticket);
  }

  rightTo(operation: Operation, name: string): Right | null {
    if (name !== this.#name || !(operation === "read" || (operation === "close" && this.#close))) return null;
    let first = this.#own;
    for (const bound of this.#bounds) {
      const right = bound.rightTo(operation, name);
      if (right === null) return null;
      first ??= right;
    }
    return first ?? FULL_RIGHT;
  }

  mayAnywhere(operation: Operation): boolean {
    return this.rightTo(operation, this.#name) !== null;
  }

  mayEverywhere(): boolean {
    return false;
  }

  rangesOf(): readonly NameRange[] {
    return [onlyName(this.#name)];
  }
}

/** When what was shown for a ticket was made, as far as that is known and counts. */
function madeMs(basis: Basis | null, nowMs: number): number {
  if (basis?.kind === "jwt") return Math.min(basis.issuedAtMs ?? 0, nowMs);
  return basis?.kind === "certificate" ? Math.min(basis.certificate.beginsAtMs, nowMs) : nowMs;
}

/**
 * The rate of the grant that a JWT or a certificate has for the stream, which its other tags can't tell; a token's can.
 */
function rateTagsOf(caller: Caller, basis: Basis | null, name: string): readonly string[] {
  const right = basis?.kind === "jwt" || basis?.kind === "certificate" ? caller.rightTo("read", name) : null;
  const rate = right?.rate ?? null;
  return right === null || rate === null ? [] : [`r${right.grant}-${rate.requests}-${rate.bytes ?? ""}`];
}

function rateRightOf({ tags }: Ticket): Right | null {
  for (const tag of tags) {
    const [, grant, requests, bytes] = RATE_TAG.exec(tag) ?? [];
    if (grant === undefined) continue;
    const rate = { requests: Number(requests), bytes: bytes === "" ? null : Number(bytes) };
    return { grant: Number(grant), rate };
  }
  return null;
}

/** Who asked for a ticket: the same for all tickets of a user; `null` for one that a backend signed. */
function askedBy({ tags }: Ticket): string | null {
  const names = tags.filter((tag) => NAMING_TAGS.includes(tag.slice(0, 1)));
  return names.length === 0 ? null : `tickets of ${names.join(" ")}`;
}

/** Its tickets end with its terms: they were judged by these. */
function termsTagOf({ iss, aud, algs, grants, trustGrants }: TicketIssuer): string {
  return tagOf("issuer", JSON.stringify([iss, aud, algs, grants, trustGrants]));
}

function certificatesTagOf(grants: readonly Grant[]): string {
  return tagOf("certificates", JSON.stringify(grants));
}

function printOf(secret: Buffer): string {
  return createHash("sha256").update(secret).digest("base64url");
}
