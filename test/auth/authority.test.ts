import assert from "node:assert/strict";
import { chmodSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test, type TestContext } from "node:test";
import { AUTH_BOUNDS } from "../../src/auth/bounds.js";
import { WatchedFile } from "../../src/ops/watched-file.js";
import { Authority, AuthFileError } from "../../src/auth/authority.js";
import { signTicket } from "../../src/auth/ticket.js";
import { authDocument, bearer, lasting, openAuthority, TICKET_SECRET, tokenOf, type LogLines } from "../helpers/auth-files.js";
import { claimsWith, jwkOf, jwtOf, JWT_NOW_MS, keySet, PAIRS } from "../helpers/jwt.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { tempDir } from "../helpers/temp-dir.js";
import { until } from "../helpers/until.js";
import { Barrier } from "../helpers/watched-files.js";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const TICKET = signTicket(TICKET_SECRET, { expiresS: JWT_NOW_MS / 1000 + 60, close: false, kid: "k1" }, "chat/42");
const PUBLIC = { public: [{ streams: ["news"], allow: ["read"] }] };

// A watch never keeps the process alive.
const alive = setInterval(() => {}, 60_000);
after(() => clearInterval(alive));

/** Puts a document in a file's place, as one change. */
function replaceBy(file: string, document: unknown): void {
  writeFileSync(`${file}.new`, JSON.stringify(document), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Fails the next three reads of a file as a system does that has no descriptor left. */
function failReads(context: TestContext, file: string): { failures: number } {
  const read = WatchedFile.read.bind(WatchedFile);
  const failing = { failures: 0 };
  const fault = Object.assign(new Error("ENFILE: file table overflow, open"), { code: "ENFILE", syscall: "open" });
  context.mock.method(WatchedFile, "read", (path: string, maxBytes: number) =>
    path === file && ++failing.failures <= 3 ? Promise.reject(fault) : read(path, maxBytes),
  );
  return failing;
}

function errorsIn(lines: LogLines): number {
  return lines.filter(({ level }) => level === "error").length;
}

describe("an authority", () => {
  for (const [title, shown, id] of [
    ["nothing", {}, "credential-missing"],
    ["a token", bearer(tokenOf("ci")), "token ci"],
    ["a token after bearer in small letters", { authorization: `bearer   ${tokenOf("ci")}` }, "token ci"],
    ["a JWT", bearer(jwtOf("ES256")), "jwt https://id.example alice"],
    ["a certificate", { certificate: lasting("x") }, "certificate x"],
    ["a token and a wrong ticket", { ...bearer(tokenOf("ci")), ticket: "x" }, "token ci"],
    ["a wrong token and a ticket", { ...bearer("x"), ticket: TICKET }, "invalid-token"],
    ["a wrong ticket and a certificate", { ticket: "x", certificate: lasting("x") }, "invalid-token"],
    ["an empty header", { authorization: "", ticket: TICKET }, "invalid-token"],
    ["an empty ticket", { ticket: "" }, "invalid-token"],
    ["no token", bearer(""), "invalid-token"],
    ["two tokens", bearer(`${tokenOf("ci")} ${tokenOf("ci")}`), "invalid-token"],
    ["two tokens that a comma joins", bearer(`${tokenOf("ci")}, Bearer x`), "invalid-token"],
    ["another scheme", { authorization: `Basic ${tokenOf("ci")}` }, "invalid-token"],
    ["a token alone", { authorization: tokenOf("ci") }, "invalid-token"],
    ["a ticket in the header", bearer(TICKET), "invalid-token"],
    ["an unknown token", bearer(tokenOf("other")), "invalid-token"],
    ["a header that is too long", bearer("x".repeat(100_000)), "invalid-token"],
  ] as const)
    test(`shown ${title}, finds ${id}`, async (context) => {
      const { who } = await openAuthority(context);
      assert.equal(who(shown, "chat/42"), id);
      assert.equal(who(shown, "chat/42"), id, "and again");
    });

  test("knows the public by its grants, and never falls back to it", async (context) => {
    const { who, caller } = await openAuthority(context, authDocument(PUBLIC));
    const everybody = caller({});
    assert.equal(everybody.id, null);
    assert.ok(everybody.rightTo("read", "news") !== null);
    assert.equal(everybody.rightTo("read", "chat/42"), null);
    assert.equal(who(bearer("x")), "invalid-token");
  });

  test("remembers a header until it ends, and none in another spelling", async (context) => {
    const { caller, who, clock } = await openAuthority(context);
    const shown = bearer(jwtOf("EdDSA"));
    assert.equal(caller(shown), caller(shown));
    const odd = { authorization: shown.authorization.replace("B", "b") };
    assert.notEqual(caller(odd), caller(odd));
    clock.advance(630_000);
    assert.equal(who(shown), "invalid-token");
  });

  test("says nothing of the file in a refusal", async (context) => {
    const { ask } = await openAuthority(context);
    const detail = (token: string): string => {
      const answer = ask(bearer(token));
      return "kind" in answer ? answer.detail : "";
    };
    assert.equal(detail(tokenOf("ci").replace(/A$/, "B")), detail(tokenOf("other")));
    const unknown = detail(jwtOf("EdDSA", claimsWith({ iss: "other" })));
    assert.equal(detail(jwtOf("EdDSA").replace(/[^.]*$/, "")), unknown);
  });
});

describe("the file of an authority", () => {
  test("is read whole at the start, or refused with its line", async () => {
    const file = join(tempDir(), "auth.json");
    const options = { file, clock: new ManualClock(), log: SILENT };
    await assert.rejects(
      Authority.open(options),
      (error) => error instanceof AuthFileError && /auth\.json:1: can't be read/.test(error.message),
    );
    writeFileSync(file, '{\n "tokens": 1 }', { mode: 0o600 });
    await assert.rejects(Authority.open(options), new AuthFileError(`${file}:2: tokens must be a list, in [ ]`));
    writeFileSync(file, " ".repeat(AUTH_BOUNDS.fileBytes + 1));
    await assert.rejects(Authority.open(options), /more than 1048576 bytes/);
  });

  test("that all may read is told of once, and again when it was mended in between", async (context) => {
    const { file, authority, lines } = await openAuthority(context);
    for (const mode of [0o644, 0o644, 0o600, 0o644]) {
      chmodSync(file, mode);
      assert.equal(await authority.reload(), true);
    }
    assert.equal(lines.filter(({ level, message }) => level === "warn" && message.includes("chmod 600")).length, 2);
  });

  test("names key files, and those that all may write are told of, once", async (context) => {
    const { dir, authority, lines } = await openAuthority(context);
    for (const mode of [0o644, 0o646, 0o646]) {
      chmodSync(join(dir, "keys.json"), mode);
      assert.equal(await authority.reload(), true);
    }
    const warnings = lines.filter(({ level }) => level === "warn").map(({ message }) => message);
    assert.deepEqual(warnings, ["every user of this machine may write a key file; chmod go-w keeps it to its owner"]);
  });

  test("that is broken keeps what it said before, and says the line", async (context) => {
    const { authority, write, who, lines } = await openAuthority(context);
    authority.onChange(() => assert.fail("nothing changed"));
    write('{\n "tokens": [\n');
    assert.equal(await authority.reload(), false);
    assert.equal(who(bearer(tokenOf("ci"))), "token ci");
    const [line] = lines.filter(({ level }) => level === "error");
    assert.match(String(line?.fault), /auth\.json:3: the file has the end where a value belongs$/);
    assert.equal(authority.isCurrent, false);
    write(authDocument());
    assert.equal(await authority.reload(), true);
    assert.equal(authority.isCurrent, true);
  });

  test("ends what it no longer says, and tells those who listen", async (context) => {
    const { authority, write, who, caller } = await openAuthority(context, authDocument(PUBLIC));
    let changes = 0;
    const stop = authority.onChange(() => void changes++);
    const [ci, alice, everybody] = [caller(bearer(tokenOf("ci"))), caller(bearer(jwtOf("EdDSA"))), caller({})];
    write(authDocument({ tokens: undefined }));
    assert.equal(await authority.reload(), true);
    assert.equal(changes, 1);
    assert.equal(who(bearer(tokenOf("ci"))), "invalid-token");
    assert.equal(authority.renew(ci), null);
    assert.equal(authority.renew(everybody), null);
    assert.equal(authority.renew(alice)?.id, alice.id);
    assert.equal(
      authority.renew({
        id: null,
        endsAtMs: 1,
        rightTo: () => null,
        mayAnywhere: () => false,
        mayEverywhere: () => false,
        rangesOf: () => [],
      }),
      null,
    );
    stop();
    await authority.reload();
    assert.equal(changes, 1);
  });

  test("changes what a caller may do", async (context) => {
    const { authority, write, caller } = await openAuthority(context);
    const press = caller({ certificate: lasting("press") });
    write(authDocument({ certificates: { grants: [{ streams: ["all"], allow: ["read"] }] } }));
    await authority.reload();
    const renewed = authority.renew(press);
    assert.equal(renewed?.rightTo("append", "machines/press"), null);
    assert.ok(renewed.rightTo("read", "all") !== null);
  });

  test("is read again when it changes, and when its keys do", async (context) => {
    const { authority, file, dir, who } = await openAuthority(context, authDocument(), 5);
    const change = async (make: () => void): Promise<void> => {
      await new Promise<void>((resolve) => {
        const stop = authority.onChange(() => (stop(), resolve()));
        make();
      });
    };
    await change(() => replaceBy(file, authDocument({ tokens: undefined })));
    assert.equal(who(bearer(tokenOf("ci"))), "invalid-token");
    const keys = JSON.parse(keySet());
    await change(() => writeFileSync(join(dir, "keys.json"), JSON.stringify({ keys: keys.keys.slice(0, 1) })));
    assert.equal(who(bearer(jwtOf("EdDSA"))), "jwt https://id.example alice");
    assert.equal(who(bearer(jwtOf("ES256"))), "invalid-token");
  });

  test("is read again where it could not be for a while, though nothing changes any more", async (context) => {
    const { authority, file, who, lines } = await openAuthority(context, authDocument(), 5);
    const failing = failReads(context, file);
    replaceBy(file, authDocument({ tokens: undefined }));
    await new Promise<void>((resolve) => void authority.onChange(resolve));
    assert.equal(who(bearer(tokenOf("ci"))), "invalid-token");
    assert.deepEqual([failing.failures, errorsIn(lines)], [4, 1], "it is told once");
    failing.failures = 2;
    assert.equal(await authority.reload(), false);
    assert.equal(errorsIn(lines), 2, "whoever asks is told");
  });

  test("is taken while a key file can't be read, which is tried again though nothing changes any more", async (context) => {
    const { authority, dir, file, who, lines } = await openAuthority(context, authDocument(), 5);
    const failing = failReads(context, join(dir, "keys.json"));
    let changes = 0;
    authority.onChange(() => void (changes += 1));
    replaceBy(file, authDocument({ tokens: undefined }));
    await until(() => failing.failures === 4);
    assert.deepEqual([who(bearer(tokenOf("ci"))), who(bearer(jwtOf("EdDSA")))], ["invalid-token", "jwt https://id.example alice"]);
    assert.equal(changes, 1, "tries that find nothing new change nothing");
    assert.equal(await authority.reload(), true);
    const taken = lines.filter(({ message }) => message === "the auth file was taken").length;
    assert.deepEqual([errorsIn(lines), taken], [1, 3], "tries that find nothing new are not told");
    failing.failures = 2;
    assert.equal(await authority.reload(), true);
    const told = lines.filter(({ level }) => level === "error").at(-1);
    assert.equal(errorsIn(lines), 2, "whoever asks is told");
    assert.equal(told?.message, "a key file is not taken; its issuer keeps the keys that it had");
    assert.match(String(told.fault), /auth\.json:\d+: issuers\[0\]\.jwks can't be read: ENFILE/);
  });

  test("is tried again where a key file can't be read as it changes the algorithms", async (context) => {
    const { authority, dir, file, who } = await openAuthority(context, authDocument(), 5);
    const key = jwkOf(PAIRS.ES256.publicKey, { kid: "ES256" });
    writeFileSync(join(dir, "keys.json"), JSON.stringify({ keys: [key] }));
    assert.equal(await authority.reload(), true);
    const grants = [{ streams: ["a"], allow: ["read"] }];
    const issuer = { iss: "https://id.example", aud: "streams", algs: ["EdDSA"], jwks: "keys.json", grants };
    const failing = failReads(context, join(dir, "keys.json"));
    const fitting = jwkOf(PAIRS.EdDSA.publicKey, { kid: "EdDSA" });
    replaceBy(join(dir, "keys.json"), { keys: [fitting] });
    replaceBy(file, authDocument({ issuers: [issuer], tokens: undefined }));
    await until(() => who(bearer(jwtOf("EdDSA"))) === "jwt https://id.example alice");
    assert.equal(failing.failures, 4);
    assert.equal(who(bearer(tokenOf("ci"))), "invalid-token");
  });

  test("that changes while it is read for the first time is read after it", async (context) => {
    const file = join(tempDir(), "auth.json");
    const [before, after] = [JSON.stringify(PUBLIC), JSON.stringify({ public: [{ streams: ["other"], allow: ["read"] }] })];
    writeFileSync(file, before, { mode: 0o600 });
    const read = WatchedFile.read.bind(WatchedFile);
    const [begun, changed, both] = [new Barrier(), new Barrier(), new Barrier()];
    const texts: string[] = [];
    let reads = 0;
    context.mock.method(WatchedFile, "read", async (path: string, maxBytes: number) => {
      const text = await read(path, maxBytes);
      // An authority of an earlier test may still be at a read that it began before its end.
      if (path !== file) return text;
      begun.open();
      if (++reads === 1) await changed.opened;
      if (texts.push(text) === 2) both.open();
      return text;
    });
    const opening = Authority.open({ file, clock: new ManualClock(), log: SILENT, watchIntervalMs: 5 });
    await begun.opened;
    // Looks much less often: the authority has seen what it sees.
    await new Promise<void>((resolve) => {
      const other = new WatchedFile([file], () => (other.close(), resolve()), 100);
      writeFileSync(`${file}.new`, after, { mode: 0o600 });
      renameSync(`${file}.new`, file);
    });
    changed.open();
    const authority = await opening;
    context.after(() => authority.close());
    await both.opened;
    assert.deepEqual(texts, [before, after]);
  });

  test("is taken in the order of the questions, and not after the end", async (context) => {
    const { authority, write } = await openAuthority(context);
    write("broken");
    const first = authority.reload();
    authority.close();
    assert.deepEqual([await first, await authority.reload()], [false, false]);
  });
});
