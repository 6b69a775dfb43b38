import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAuthFile, type AuthFile } from "../../src/auth/auth-file.js";
import { Authority } from "../../src/auth/authority.js";
import { hashSecret } from "../../src/auth/token.js";
import type { Authentication, Caller } from "../../src/auth/rights/caller.js";
import type { ClientCertificate, Credentials } from "../../src/auth/rights/credentials.js";
import { JWT_NOW_MS, keySet, SECRET } from "./jwt.js";
import { ManualClock } from "./manual-clock.js";
import type { TestScope } from "./process.js";
import { tempDir } from "./temp-dir.js";

/** The secret of every token of the tests. */
export const TOKEN_SECRET = "s_".padEnd(43, "A");

/** The token with this id. */
export function tokenOf(id: string): string {
  return `sd_${id}_${TOKEN_SECRET}`;
}

/** The hash of {@link TOKEN_SECRET}. */
export const TOKEN_HASH = hashSecret(TOKEN_SECRET).toString("hex");

/** The secret of every ticket key of the tests. */
export const TICKET_SECRET = Buffer.alloc(32, 9);

/** An auth file with one of each. */
export function authDocument(more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    tokens: [{ id: "ci", sha256: TOKEN_HASH, grants: [{ streams: ["chat/**"], allow: ["read", "append", "close"], rate: "50,1MiB" }] }],
    issuers: [
      {
        iss: "https://id.example",
        aud: "streams",
        algs: ["EdDSA", "ES256", "RS256"],
        jwks: "keys.json",
        grants: [{ streams: ["users/{sub}/**"], allow: ["read"] }],
      },
      { iss: "hmac", aud: "streams", algs: ["HS256"], secret: SECRET.toString("base64url"), trustGrants: true },
    ],
    certificates: { grants: [{ streams: ["machines/{sub}"], allow: ["append"] }] },
    ticketKeys: [{ id: "k1", secret: TICKET_SECRET.toString("base64url") }],
    ...more,
  };
}

/** A document as the server reads it. */
export function parsed(document: unknown): AuthFile {
  return parseAuthFile({ file: "auth.json", text: JSON.stringify(document) });
}

/** What a log said. */
export type LogLines = { readonly level: string; readonly message: string; readonly fault: unknown }[];

/** A certificate with this common name and no end, half a minute old where its age is not given. */
export function lasting(name: string, ageMs = 30_000): ClientCertificate {
  return { name, chain: [], beginsAtMs: JWT_NOW_MS - ageMs, endsAtMs: Infinity };
}

/** An authority on a file of its own, with keys beside it. */
export async function openAuthority(scope: TestScope, document: unknown = authDocument(), watchIntervalMs = 3_600_000) {
  const dir = tempDir();
  const file = join(dir, "auth.json");
  const write = (next: unknown): void =>
    writeFileSync(file, typeof next === "string" ? next : JSON.stringify(next, null, 1), { mode: 0o600 });
  write(document);
  writeFileSync(join(dir, "keys.json"), keySet(), { mode: 0o644 });
  const lines: LogLines = [];
  const say =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      void lines.push({ level, message, fault: fields["fault"] });
  const log = { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") };
  const clock = new ManualClock(JWT_NOW_MS);
  const authority = await Authority.open({ file, clock, log, watchIntervalMs });
  scope.after(async () => authority.close());
  const ask = (shown: Partial<Credentials>, name: string | null = null): Authentication => {
    const found = authority.authenticate({ authorization: null, ticket: null, certificate: null, ...shown }, name);
    assert.ok(!(found instanceof Promise), "it is known at once");
    return found;
  };
  /** The caller, or why there is none. */
  const who = (shown: Partial<Credentials>, name: string | null = null): string | null => {
    const found = ask(shown, name);
    return "kind" in found ? found.code : found.id;
  };
  const caller = (shown: Partial<Credentials>, name: string | null = null): Caller => {
    const found = ask(shown, name);
    assert.ok(!("kind" in found), JSON.stringify(found));
    return found;
  };
  return { authority, file, dir, write, lines, clock, ask, who, caller };
}

/** An `Authorization` with this token. */
export function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}
