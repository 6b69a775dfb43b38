// Auth files of tests, and credentials for them.

import { createHash, createHmac, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Operation } from "../../src/auth/rights/operation.js";
import { tempDir } from "./temp-dir.js";

/** A grant as the file has it. */
export interface FileGrant {
  readonly streams: readonly string[];
  readonly allow: readonly Operation[];
  readonly rate?: string;
}

const ISSUER = "https://id.example";
const AUDIENCE = "streams";

/** An auth file that a test writes, and writes again. */
export class AuthFile {
  readonly path = join(tempDir(), "auth.json");
  readonly #tokens: Record<string, unknown>[] = [];
  readonly #jwtSecret = randomBytes(32);
  readonly #ticketSecret = randomBytes(32);
  #jwtGrants: readonly FileGrant[] = [];
  #trustsJwtGrants = false;
  #hasTicketKey = true;
  #publicGrants: readonly FileGrant[] = [];
  #certificateGrants: readonly FileGrant[] = [];
  #revoked: Record<string, unknown>[] = [];

  /** Adds a token, and returns it. */
  token(id: string, grants: readonly FileGrant[], expires?: string): string {
    const secret = randomBytes(32).toString("base64url");
    const sha256 = createHash("sha256").update(secret).digest("hex");
    this.#tokens.push({ id, sha256, created: "2025-12-31T00:00:00Z", grants, ...(expires === undefined ? {} : { expires }) });
    return `sd_${id}_${secret}`;
  }

  /** Takes a token away. */
  removeToken(id: string): void {
    const at = this.#tokens.findIndex((token) => token["id"] === id);
    this.#tokens.splice(at, 1);
  }

  /** Gives a token other grants. */
  regrant(id: string, grants: readonly FileGrant[]): void {
    const token = this.#tokens.find((each) => each["id"] === id);
    if (token !== undefined) token["grants"] = grants;
  }

  /** What the issuer's JWTs may do. */
  grantJwts(grants: readonly FileGrant[]): void {
    this.#jwtGrants = grants;
  }

  /** The issuer may grant by the claim `authorization_details`. */
  trustJwtGrants(): void {
    this.#trustsJwtGrants = true;
  }

  grantPublic(grants: readonly FileGrant[]): void {
    this.#publicGrants = grants;
  }

  grantCertificates(grants: readonly FileGrant[]): void {
    this.#certificateGrants = grants;
  }

  revoke(what: Record<string, unknown>): void {
    this.#revoked.push(what);
  }

  /** A JWT of the issuer for an hour from `nowMs`; `claims` come on top. */
  jwt(nowMs: number, claims: Readonly<Record<string, unknown>> = {}): string {
    const seconds = Math.floor(nowMs / 1000);
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const body = { iss: ISSUER, aud: AUDIENCE, sub: "alice", exp: seconds + 3600, ...claims };
    const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part(body)}`;
    return `${signed}.${createHmac("sha256", this.#jwtSecret).update(signed).digest("base64url")}`;
  }

  /** A ticket as a backend signs it; `exp` in seconds since 1970. */
  ticket(name: string, exp: number, operations: "r" | "rc" = "r", kid = "k1"): string {
    const head = `v1.${exp}.${operations}.${kid}`;
    return `${head}.${createHmac("sha256", this.#ticketSecret).update(`${head}.${name}`).digest("base64url")}`;
  }

  /** Writes it, for the server to read. */
  write(): void {
    const jwtSecret = this.#jwtSecret.toString("base64url");
    const issuer = { iss: ISSUER, aud: AUDIENCE, algs: ["HS256"], secret: jwtSecret };
    const grants = this.#jwtGrants.length === 0 ? {} : { grants: this.#jwtGrants };
    const file = {
      ...(this.#tokens.length === 0 ? {} : { tokens: this.#tokens }),
      ...(this.#jwtGrants.length === 0 && !this.#trustsJwtGrants
        ? {}
        : { issuers: [{ ...issuer, ...grants, ...(this.#trustsJwtGrants ? { trustGrants: true } : {}) }] }),
      ...(this.#certificateGrants.length === 0 ? {} : { certificates: { grants: this.#certificateGrants } }),
      ...(this.#publicGrants.length === 0 ? {} : { public: this.#publicGrants }),
      ...(this.#revoked.length === 0 ? {} : { revoked: this.#revoked }),
      ...(this.#hasTicketKey ? { ticketKeys: [{ id: "k1", secret: this.#ticketSecret.toString("base64url") }] } : {}),
    };
    writeFileSync(this.path, JSON.stringify(file, null, 2), { mode: 0o600 });
  }

  /** Tickets can't be signed. */
  withoutTicketKey(): void {
    this.#hasTicketKey = false;
  }

  /** Makes it no JSON. */
  spoil(): void {
    writeFileSync(this.path, '{\n  "tokens": [}\n');
  }
}
