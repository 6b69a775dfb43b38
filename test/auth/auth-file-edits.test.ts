import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parseAuthFile } from "../../src/auth/auth-file.js";
import { addTicketKey, addToken, listTokens, revokeToken, signTicketOf } from "../../src/auth/auth-file-edits.js";
import { AUTH_BOUNDS } from "../../src/auth/bounds.js";
import { AuthFileError } from "../../src/auth/checked-json.js";
import { Revocations } from "../../src/auth/revocations.js";
import { parseToken, Tokens } from "../../src/auth/token.js";
import { authDocument, TOKEN_HASH } from "../helpers/auth-files.js";
import { tempDir } from "../helpers/temp-dir.js";

const NOW = Date.UTC(2026, 0, 1);
const READS = { streams: ["a"], allow: ["read"], lifetimeMs: null };

function fileWith(document: unknown): string {
  const file = join(tempDir(), "auth.json");
  writeFileSync(file, typeof document === "string" ? document : JSON.stringify(document), { mode: 0o600 });
  return file;
}

function read(file: string) {
  return parseAuthFile({ file, text: readFileSync(file, "utf8") });
}

/** Whether the file takes a token now. */
function takes(file: string, token: string, nowMs = NOW): boolean {
  const { tokens, revoked } = read(file);
  const parts = parseToken(token);
  return parts !== null && new Tokens(tokens, new Revocations(revoked)).authenticate(parts, nowMs) !== null;
}

async function refused(promise: Promise<unknown>, words: RegExp): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof AuthFileError, String(error));
    assert.match(error.message, words);
    return true;
  });
}

describe("an auth file that commands change", () => {
  test("keeps what they do not change", async () => {
    const document = authDocument({ revoked: [{ sub: "x" }] });
    const file = fileWith(document);
    await addToken(file, { id: "new", ...READS }, NOW);
    await revokeToken(file, "new", NOW);
    const { revoked, ...rest } = JSON.parse(readFileSync(file, "utf8"));
    const { revoked: before, ...others } = document;
    assert.deepEqual(rest, others);
    assert.deepEqual(revoked.slice(0, 1), before);
  });

  test("loses none of many that come at once", async () => {
    const file = join(tempDir(), "auth.json");
    const ids = Array.from({ length: 8 }, (_, at) => `t${at}`);
    await Promise.all(ids.map((id) => addToken(file, { id, ...READS }, NOW)));
    assert.deepEqual((await listTokens(file, NOW)).map(({ id }) => id).sort(), ids);
  });

  test("takes a new token with the id of a revoked one, all in one millisecond, and not the old", async () => {
    const file = join(tempDir(), "auth.json");
    const old = await addToken(file, { id: "ci", ...READS }, NOW);
    assert.equal(takes(file, old), true);
    for (let round = 0; round < 3; round++) {
      await revokeToken(file, "ci", NOW);
      assert.equal(takes(file, old), false);
      const next = await addToken(file, { id: "ci", ...READS }, NOW);
      assert.equal(takes(file, next), true);
      assert.equal(takes(file, old), false);
    }
    assert.equal(read(file).revoked.length, 1);
  });

  test("keeps a revocation for ever", async () => {
    const file = fileWith({
      tokens: [{ id: "a", sha256: TOKEN_HASH, grants: [{ streams: ["a"], allow: ["read"] }] }],
      revoked: [{ id: "a" }],
    });
    await revokeToken(file, "a", NOW);
    assert.deepEqual(read(file).revoked, [{ kind: "id", value: "a", beforeMs: Infinity }]);
    await refused(addToken(file, { id: "a", ...READS }, NOW), /revokes every token a/);
  });

  test("has room for a revocation, however many there were before the last tickets", async () => {
    const before = (days: number): string => new Date(NOW - days * 86_400_000).toISOString();
    const grants = [{ streams: ["a"], allow: ["read"] }];
    const tokens = ["leaked", "again"].map((id) => ({ id, sha256: TOKEN_HASH, created: before(1), grants }));
    const needed = [
      { id: "recent", before: before(7) },
      { id: "again", before: before(30) },
      { id: "ever" },
      { sub: "x", before: before(30) },
      { jti: "x", before: before(30) },
      { id: "yesterday", before: before(1) },
    ];
    const old = Array.from({ length: AUTH_BOUNDS.revocations - needed.length }, (_, at) => ({ id: `old${at}`, before: before(8) }));
    for (const change of [
      (file: string) => revokeToken(file, "leaked", NOW),
      (file: string) => addToken(file, { id: "new", ...READS }, NOW),
    ]) {
      const file = fileWith({ tokens, revoked: [...old, ...needed] });
      await change(file);
      const { revoked } = JSON.parse(readFileSync(file, "utf8"));
      assert.deepEqual(revoked.slice(0, needed.length), needed);
      const more = revoked.slice(needed.length).map(({ id }: { id: string }) => id);
      assert.deepEqual(more, read(file).tokens.some(({ id }) => id === "leaked") ? [] : ["leaked"]);
    }
    const alone = fileWith({ revoked: [{ id: "old", before: before(8) }] });
    await addToken(alone, { id: "new", ...READS }, NOW);
    assert.deepEqual(read(alone).revoked, []);
  });

  test("tells whose token is over or revoked", async () => {
    const grants = [{ streams: ["a"], allow: ["read"] }];
    const token = (id: string, more = {}) => ({ id, sha256: TOKEN_HASH, grants, ...more });
    const file = fileWith({
      tokens: [token("a"), token("b", { expires: "2025-01-01T00:00:00Z" }), token("c", { created: "2025-01-01T00:00:00Z" })],
      revoked: [{ id: "c", before: "2025-06-01T00:00:00Z" }],
    });
    const listed = await listTokens(file, NOW);
    assert.deepEqual(
      listed.map(({ id, state, created, expires }) => [id, state, created, expires]),
      [
        ["a", "valid", null, null],
        ["b", "over", null, "2025-01-01T00:00:00.000Z"],
        ["c", "revoked", "2025-01-01T00:00:00.000Z", null],
      ],
    );
  });

  test("signs with the first key that may, or the one that is named", async () => {
    const limited = { id: "one", secret: "A".repeat(43), grants: [{ streams: ["chat/*"], allow: ["read"] }] };
    const file = fileWith({ ticketKeys: [limited] });
    await addTicketKey(file, "two");
    const sign = (name: string, close: boolean, keyId: string | null = null) =>
      signTicketOf(file, { name, close, lifetimeMs: 60_000, keyId }, NOW);
    const start = `v1.${NOW / 1000 + 60}`;
    assert.ok((await sign("chat/1", false))?.startsWith(`${start}.r.one.`));
    assert.ok((await sign("chat/1", true))?.startsWith(`${start}.rc.two.`));
    assert.ok((await sign("other", false))?.startsWith(`${start}.r.two.`));
    assert.equal(await sign("other", false, "one"), null);
    assert.equal(await sign("other", false, "three"), null);
  });

  test("signs with a new key at once, but for streams whose key has grants; tickets of the old one go on", async () => {
    const secret = "A".repeat(43);
    const limited = (id: string) => ({ id, secret, grants: [{ streams: [`${id}/*`], allow: ["read"] }] });
    const file = fileWith({ ticketKeys: [limited("tenant"), { id: "k1", secret }, limited("last")] });
    assert.deepEqual(await addTicketKey(file, "k2"), ["tenant"]);
    assert.deepEqual(
      read(file).ticketKeys.map(({ id }) => id),
      ["tenant", "k2", "k1", "last"],
    );
    const signer = async (name: string) =>
      (await signTicketOf(file, { name, close: false, lifetimeMs: 60_000, keyId: null }, NOW))?.split(".")[3];
    assert.deepEqual([await signer("tenant/1"), await signer("other"), await signer("last/1")], ["tenant", "k2", "k2"]);
    const first = fileWith({ ticketKeys: [{ id: "k1", secret }] });
    assert.deepEqual(await addTicketKey(first, "k2"), []);
    assert.deepEqual(
      read(first).ticketKeys.map(({ id }) => id),
      ["k2", "k1"],
    );
  });

  test("is not touched by what would make it wrong, or by a fault that it had", async () => {
    const file = fileWith(authDocument());
    const before = readFileSync(file, "utf8");
    await refused(addToken(file, { id: "ci", ...READS }, NOW), /has a token ci already/);
    await refused(addToken(file, { id: "a", ...READS, streams: ["/a"] }, NOW), /auth\.json:\d+: tokens\[1\]\.grants\[0\]\.streams\[0\]/);
    await refused(revokeToken(file, "other", NOW), /has no token other/);
    await refused(addTicketKey(file, "k1"), /has a ticket key k1 already/);
    assert.equal(readFileSync(file, "utf8"), before);
    const broken = fileWith("{\n");
    await refused(addToken(broken, { id: "a", ...READS }, NOW), /auth\.json:2: the file has the end/);
    await refused(addTicketKey(join(tempDir(), "none", "auth.json"), "a"), /auth\.json: ENOENT/);
    const full = fileWith(`{}${" ".repeat(AUTH_BOUNDS.fileBytes)}`);
    await refused(addToken(full, { id: "a", ...READS }, NOW), /more than 1048576 bytes/);
  });
});
