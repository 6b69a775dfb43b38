// Decides whether a request may be served, before anything is looked up for it.

import type { Authority } from "../../auth/authority.js";
import type { Authentication, Caller } from "../../auth/rights/caller.js";
import type { ClientCertificate, Credentials } from "../../auth/rights/credentials.js";
import { OPERATIONS, type Operation } from "../../auth/rights/operation.js";
import type { Clock } from "../../ops/clock.js";
import { ALL_NAMES, commonRanges, type NameRange } from "../../protocol/names/name-range.js";
import { chain } from "../../stream/loaded/chain.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import { isProblem, problem, type Problem } from "../encoding/problems.js";
import type { Exchange } from "../exchange/exchange.js";
import { readTicket } from "../request/ticket-query.js";
import { LiveRights } from "./live-rights.js";
import { neededRight } from "./needed-right.js";
import type { RequestRates } from "./request-rates.js";
import type { SitePolicy } from "./site-policy.js";

/** What access is decided from. */
export interface AccessOptions {
  /** `null` without an auth file: then everybody who reaches the server may do anything. */
  readonly authority: Authority | null;
  readonly site: SitePolicy;
  readonly rates: RequestRates;
  readonly clock: Clock;
  /** In front of a fork's source. */
  readonly prefix: string;
  /** The certificate that the client has proved to be its own; always `null` where clients are not asked for one. */
  readonly certificateOf: (exchange: Exchange) => ClientCertificate | null;
}

/** Whoever asks for the list of streams. */
export interface Lister {
  may(operation: Operation, name: string): boolean;
  /** Where all names are that it may list and read: others need no look. */
  ranges(): readonly NameRange[];
}

/** What the sender of a request may do, as its credential says. */
export interface Rights {
  /** Names the credential, never its secret; `null` for who sent none. */
  readonly caller: string | null;
  readonly allow: readonly Operation[];
}

const EVERYBODY: Lister = { may: () => true, ranges: () => [ALL_NAMES] };

/** Of a request that came slowly. */
export const CREDENTIAL_GONE = problem("invalid-token", {
  detail: "The credential was over or revoked before the request had come.",
});

/** Decides who may do what (docs/auth.md). */
export class Access {
  readonly site: SitePolicy;
  readonly #rates: RequestRates;
  readonly #authority: Authority | null;
  /** `null` where there is no authority, and only there. */
  readonly #liveRights: LiveRights | null;
  readonly #prefix: string;
  readonly #certificateOf: (exchange: Exchange) => ClientCertificate | null;

  constructor({ authority, site, rates, clock, prefix, certificateOf }: AccessOptions) {
    this.site = site;
    this.#rates = rates;
    this.#authority = authority;
    this.#liveRights = authority === null ? null : new LiveRights(authority, clock);
    this.#prefix = prefix;
    this.#certificateOf = certificateOf;
  }

  /** Whether there is an auth file. */
  get isGuarded(): boolean {
    return this.#authority !== null;
  }

  /** Why a request on the stream `name` is refused; `null` when it may go on. Existence plays no part. */
  refusalOf(exchange: Exchange, name: string): MaybePromise<Problem | null> {
    const { method = "" } = exchange.req;
    const isChange = method !== "GET" && method !== "HEAD";
    const refusal = isChange ? this.site.refusalOfOrigin(exchange) : null;
    if (refusal !== null) return this.#counted(exchange, refusal);
    if (this.#authority === null) return this.#rates.refusalOf(exchange, null, null);
    const credentials = this.#credentialsOf(exchange);
    if (isProblem(credentials)) return this.#counted(exchange, credentials);
    // The file may change while keys are fetched.
    const changes = this.#liveRights?.changes ?? 0;
    const tooMuch = this.#refusalBeforeVerifying(exchange, this.#authority, credentials);
    if (tooMuch !== null) return tooMuch;
    const found = this.#authority.authenticate(credentials, name);
    if (!(found instanceof Promise)) return this.#judge(exchange, name, found, changes);
    return found.then((authentication) => this.#judge(exchange, name, authentication, changes));
  }

  /** Why a request that was let in at its head is refused when its body has come; `null` when it may go on. */
  refusalOfLate(exchange: Exchange, name: string): Problem | null {
    const { caller, req, headers } = exchange;
    if (this.#authority === null || caller === null) return null;
    const now = this.#authority.renew(caller);
    if (now === null) return caller.id === null ? problem("credential-missing") : CREDENTIAL_GONE;
    const right = neededRight(now, { method: req.method ?? "", headers, name, prefix: this.#prefix });
    return typeof right === "string" ? lackOf(now, right) : null;
  }

  /** What is refused before anybody is known counts for the address that it comes from. */
  #counted(exchange: Exchange, refusal: Problem): Problem {
    return this.#rates.refusalOf(exchange, null, null) ?? refusal;
  }

  #credentialsOf(exchange: Exchange): Credentials | Problem {
    const ticket = readTicket(exchange.target.query);
    if (isProblem(ticket)) return ticket;
    const { authorization } = exchange.headers;
    const certificate = this.#certificateOf(exchange);
    const counts = certificate === null || this.site.refusalOfOrigin(exchange, true) === null;
    return { authorization, ticket: ticket.value, certificate: counts ? certificate : null };
  }

  /** Says so where what is missing is a certificate that the browser has added, and does not count for the page. */
  #explained(exchange: Exchange, refusal: Problem): Problem {
    if (refusal.code !== "credential-missing" || this.#certificateOf(exchange) === null) return refusal;
    return this.site.refusalOfOrigin(exchange, true) ?? refusal;
  }

  #judge(exchange: Exchange, name: string, found: Authentication, changes: number): Problem | null {
    if ("kind" in found)
      return this.#counted(exchange, this.#explained(exchange, problem(found.code, { detail: found.detail })));
    this.#admit(exchange, found, changes);
    const { req, headers } = exchange;
    const right = neededRight(found, { method: req.method ?? "", headers, name, prefix: this.#prefix });
    if (typeof right !== "string") return this.#rates.refusalOf(exchange, found, right);
    return this.#rates.refusalOf(exchange, found, null) ?? this.#explained(exchange, lackOf(found, right));
  }

  /** What `exchange` may still do is looked after from then on when it asks for that: small requests do not. */
  #admit(exchange: Exchange, caller: Caller, changes: number): void {
    exchange.caller = caller;
    exchange.rights = this.#liveRights;
    exchange.changesSeen = changes;
  }

  /** Why a request that concerns the server itself is refused; `null` when it may go on. */
  refusalOfAdmin(exchange: Exchange): MaybePromise<Problem | null> {
    if (this.#authority === null) return null;
    const credentials = this.#credentialsOf(exchange);
    if (isProblem(credentials)) return this.#counted(exchange, credentials);
    return chain(this.#authenticated(exchange, this.#authority, credentials), (found) => {
      if (isProblem(found)) return this.#explained(exchange, found);
      return found.mayEverywhere("admin") ? null : this.#explained(exchange, lackOf(found, "admin"));
    });
  }

  /**
   * What the sender of a request may do with the stream `name`, there or not; with `null`, what it may do with some
   * stream. Who sent no credential has the rights of the public, which may be none.
   */
  rightsOf(exchange: Exchange, name: string | null): MaybePromise<Rights | Problem> {
    if (this.#authority === null)
      return this.#rates.refusalOf(exchange, null, null) ?? { caller: null, allow: OPERATIONS };
    const credentials = this.#credentialsOf(exchange);
    if (isProblem(credentials)) return this.#counted(exchange, credentials);
    return chain(this.#authenticated(exchange, this.#authority, credentials, name), (found) => {
      if (!isProblem(found)) return { caller: found.id, allow: OPERATIONS.filter((one) => mayDo(found, one, name)) };
      return found.code === "credential-missing" ? { caller: null, allow: [] } : found;
    });
  }

  /** Which streams the sender of a request for the list may see, or why it is refused. */
  listerOf(exchange: Exchange): MaybePromise<Lister | Problem> {
    const liveRights = this.#liveRights;
    if (this.#authority === null || liveRights === null)
      return this.#rates.refusalOf(exchange, null, null) ?? EVERYBODY;
    const credentials = this.#credentialsOf(exchange);
    if (isProblem(credentials)) return this.#counted(exchange, credentials);
    const { changes } = liveRights;
    return chain(this.#authenticated(exchange, this.#authority, credentials), (found) => {
      if (isProblem(found)) return this.#explained(exchange, found);
      if (!found.mayAnywhere("list")) return this.#explained(exchange, lackOf(found, "list"));
      this.#admit(exchange, found, changes);
      // Looked up name by name, with what the caller may at that moment.
      return {
        may: (operation: Operation, each: string) => isAllowed(liveRights.callerOf(exchange), operation, each),
        ranges: () => {
          const caller = liveRights.callerOf(exchange);
          return caller === null ? [] : commonRanges(caller.rangesOf("list"), caller.rangesOf("read"), "");
        },
      };
    });
  }

  /**
   * Who sent a request that names no stream in its path, or why it is refused. Without a credential of the caller's own
   * there is nobody.
   */
  callerOf(exchange: Exchange): MaybePromise<Caller | Problem> {
    const refusal = this.site.refusalOfOrigin(exchange);
    if (refusal !== null) return this.#counted(exchange, refusal);
    const credentials = this.#credentialsOf(exchange);
    if (isProblem(credentials)) return this.#counted(exchange, credentials);
    if (this.#authority === null) return problem("unknown-path");
    return chain(this.#authenticated(exchange, this.#authority, credentials), (found) => {
      const who = !isProblem(found) && found.id === null ? problem("credential-missing") : found;
      return isProblem(who) ? this.#explained(exchange, who) : who;
    });
  }

  /** A flood of forged JWTs must not cost a signature each. */
  #refusalBeforeVerifying(exchange: Exchange, authority: Authority, credentials: Credentials): Problem | null {
    const refusal = this.#rates.refusalOfUnknown(exchange);
    return refusal !== null && authority.mustVerify(credentials) ? refusal : null;
  }

  /** Who sent a request that names no stream in its path, or why nobody may send it now. */
  #authenticated(
    exchange: Exchange,
    authority: Authority,
    credentials: Credentials,
    name: string | null = null,
  ): MaybePromise<Caller | Problem> {
    const refusal = this.#refusalBeforeVerifying(exchange, authority, credentials);
    if (refusal !== null) return refusal;
    return chain(authority.authenticate(credentials, name), (found) => {
      const isCaller = !("kind" in found);
      if (isCaller) exchange.caller = found;
      const tooMuch = this.#rates.refusalOf(exchange, isCaller ? found : null, null);
      return tooMuch ?? (isCaller ? found : problem(found.code, { detail: found.detail }));
    });
  }
}

/** Whether there is nothing that `lister` may not see, whatever there is. */
export function seesAll(lister: Lister): boolean {
  return lister.ranges().some(({ from, to, sources }) => from === "" && to === null && sources === undefined);
}

/** Whether the list has the stream of this name for `lister`: that needs `list`, and `read`. */
export function maySee(lister: Lister, name: string): boolean {
  return lister.may("list", name) && lister.may("read", name);
}

/** Why `caller` may not: who sent nothing may send a credential, who sent one needs another. */
export function lackOf(caller: Caller, operation: string): Problem {
  if (caller.id === null) return problem("credential-missing");
  return problem("not-allowed", { detail: `The credential does not allow ${operation} here.` });
}

function mayDo(caller: Caller, operation: Operation, name: string | null): boolean {
  // It concerns the server, and so all streams.
  if (operation === "admin") return caller.mayEverywhere(operation);
  return name === null ? caller.mayAnywhere(operation) : caller.rightTo(operation, name) !== null;
}

function isAllowed(caller: Caller | null, operation: Operation, name: string): boolean {
  return caller !== null && caller.rightTo(operation, name) !== null;
}
