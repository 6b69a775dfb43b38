// One state of the auth file: who somebody is under it. A new file makes a new policy.

import type { AuthFile } from "./auth-file.js";
import type { ClientAuthorities } from "./client-authorities.js";
import { KnownCaller } from "./known-caller.js";
import type { Basis } from "./known-caller.js";
import { detailOf, jwtFault } from "./jwt/fault.js";
import type { JwtFault } from "./jwt/fault.js";
import { judgeAgain, verifyJwt } from "./jwt/verify.js";
import type { Issuer, Issuers, JwtAnswer } from "./jwt/verify.js";
import { Revocations } from "./revocations.js";
import type { Authentication, Unauthenticated } from "./rights/caller.js";
import { Grants } from "./rights/grant.js";
import type { Grant } from "./rights/grant.js";
import type { ClientCertificate } from "./rights/credentials.js";
import { isSub } from "./rights/pattern.js";
import { TICKET_FAULTS, type TicketFault } from "./ticket.js";
import { Tickets } from "./tickets.js";
import { parseToken, TOKEN_PREFIX, Tokens } from "./token.js";

/** An issuer with its grants. */
export interface GrantingIssuer extends Issuer {
  readonly grants: readonly Grant[];
}

const NEVER_MS = Infinity;
const UNKNOWN_TOKEN = invalid("The token is unknown, over or revoked.");
const TICKET_WITHOUT_NAME = invalid("A ticket counts for one stream only, and this request names none.");
const TOKEN_IN_URL = invalid(
  "Tokens never go in a URL, where logs and proxies keep them: send Authorization: Bearer TOKEN, or a ticket here.",
);
const CERTIFICATE_OVER = invalid("The client's certificate has expired.");
const CERTIFICATE_REVOKED = invalid("The client's certificate is revoked.");
const BAD_CERTIFICATE = invalid("The client's certificate gives no rights here.");

/** The refusal of a credential that is there and wrong. */
export function invalid(detail: string): Unauthenticated {
  return { kind: "unauthenticated", code: "invalid-token", detail };
}

/** Who somebody is under one state of the auth file. Nothing here throws or rejects. */
export class Policy {
  /** Who shows no credential; `null` where the file grants them nothing. */
  readonly publicCaller: KnownCaller | null;
  readonly tickets: Tickets;
  readonly #tokens: Tokens;
  readonly #issuers: Issuers<GrantingIssuer>;
  readonly #certificates: readonly Grant[] | null;
  readonly #revocations: Revocations;

  readonly #clientAuthorities: ClientAuthorities;

  constructor(file: AuthFile, issuers: Issuers<GrantingIssuer>, clientAuthorities: ClientAuthorities) {
    this.#clientAuthorities = clientAuthorities;
    this.#revocations = new Revocations(file.revoked);
    this.#tokens = new Tokens(file.tokens, this.#revocations);
    this.#issuers = issuers;
    this.#certificates = file.certificates;
    const rights = new Grants(file.public, null);
    this.publicCaller = file.public.length === 0 ? null : new KnownCaller(null, NEVER_MS, rights, { kind: "public" });
    this.tickets = new Tickets(file.ticketKeys, {
      tokens: this.#tokens,
      revocations: this.#revocations,
      issuers,
      certificates: file.certificates,
      clientAuthorities,
      publicCaller: this.publicCaller,
    });
  }

  /** Who has the token or JWT `text`. */
  byBearer(text: string, nowMs: number): Authentication | Promise<Authentication> {
    if (text.startsWith(TOKEN_PREFIX)) {
      const parsed = parseToken(text);
      return (parsed === null ? null : this.#tokens.authenticate(parsed, nowMs)) ?? UNKNOWN_TOKEN;
    }
    const answer = verifyJwt(text, this.#issuers, nowMs);
    return answer instanceof Promise ? answer.then((found) => this.#byJwt(found)) : this.#byJwt(answer);
  }

  /** Who has the ticket `text` for the stream `name`. */
  byTicket(text: string, name: string | null, nowMs: number): Authentication | Promise<Authentication> {
    if (text.startsWith(TOKEN_PREFIX) || text.split(".", 6).length === 3) return TOKEN_IN_URL;
    if (name === null) return TICKET_WITHOUT_NAME;
    const judged = (found: KnownCaller | TicketFault): Authentication =>
      typeof found === "string" ? invalid(TICKET_FAULTS[found]) : found;
    const found = this.tickets.authenticate(text, name, nowMs);
    return found instanceof Promise ? found.then(judged) : judged(found);
  }

  /**
   * Who has a certificate that an authority has signed. Connections outlive the certificate that they began with: it
   * counts until it ends, and as long as its authority does.
   */
  byCertificate(certificate: ClientCertificate, nowMs: number): KnownCaller | Unauthenticated {
    const { name, beginsAtMs, endsAtMs } = certificate;
    if (nowMs >= endsAtMs) return CERTIFICATE_OVER;
    if (!this.#clientAuthorities.trust(certificate)) return BAD_CERTIFICATE;
    if (this.#certificates === null || !isSub(name)) return BAD_CERTIFICATE;
    if (this.#revocations.has("sub", name, beginsAtMs)) return CERTIFICATE_REVOKED;
    const rights = new Grants(this.#certificates, name);
    return new KnownCaller(`certificate ${name}`, endsAtMs, rights, { kind: "certificate", certificate });
  }

  /** Who one with this basis is now; `null` when what it showed no longer counts. */
  renew(basis: Basis, nowMs: number): KnownCaller | null {
    switch (basis.kind) {
      case "public":
        return this.publicCaller;
      case "token":
        return this.#tokens.renew(basis.id, basis.hash, nowMs);
      case "ticket":
        return this.tickets.renew(basis, nowMs);
      case "certificate":
        return callerOrNull(this.byCertificate(basis.certificate, nowMs));
      case "jwt":
        return callerOrNull(this.#byJwt(judgeAgain(basis.jwt, this.#issuers, nowMs)));
    }
  }

  #byJwt(answer: JwtAnswer<GrantingIssuer> | JwtFault): KnownCaller | Unauthenticated {
    if (answer.kind === "fault") return invalid(detailOf(answer));
    const { issuer, claims, jwt } = answer;
    const { sub, jti, issuedAtMs } = claims;
    const isRevoked =
      (sub !== null && this.#revocations.has("sub", sub, issuedAtMs)) ||
      (jti !== null && this.#revocations.has("jti", jti, issuedAtMs));
    if (isRevoked) return invalid(detailOf(jwtFault("revoked")));
    const grants = new Grants([...issuer.grants, ...claims.grants], sub);
    // A space begins the `sub`.
    const iss = issuer.iss.replaceAll(" ", "%20");
    const id = sub === null ? `jwt ${iss}` : `jwt ${iss} ${sub}`;
    const weight = jwt.weight + grants.weight;
    return new KnownCaller(id, claims.endsAtMs, grants, { kind: "jwt", jwt, sub, jti, issuedAtMs, weight });
  }
}

function callerOrNull(found: KnownCaller | Unauthenticated): KnownCaller | null {
  return found instanceof KnownCaller ? found : null;
}
