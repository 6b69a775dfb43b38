import assert from "node:assert/strict";
import { renameSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test, type TestContext } from "node:test";
import { AuthFileError } from "../../src/auth/checked-json.js";
import { IssuerKeys, keyFilesOf } from "../../src/auth/issuer-keys.js";
import { RemoteKeys } from "../../src/auth/jwt/remote-keys.js";
import { WatchedFile } from "../../src/ops/watched-file.js";
import { authDocument, bearer, openAuthority, parsed, tokenOf } from "../helpers/auth-files.js";
import { canMakeCertificates, httpsIssuer } from "../helpers/https-issuer.js";
import { claimsWith, jwkOf, jwtOf, keySet, PAIRS } from "../helpers/jwt.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { tempDir } from "../helpers/temp-dir.js";
import { Barrier } from "../helpers/watched-files.js";
import { until } from "../helpers/until.js";

const KEPT = "a key file is not taken; its issuer keeps the keys that it had";
const NONE = "a key file is not taken; its issuer has no keys, and its JWTs are refused";
const ALICE = "jwt https://id.example alice";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const ISSUER = { iss: "https://id.example", aud: "streams", algs: ["EdDSA"], grants: [{ streams: ["a"], allow: ["read"] }] };

function keysIn(context: TestContext, dir = tempDir()): { keys: IssuerKeys; dir: string } {
  const keys = new IssuerKeys({ authFile: join(dir, "auth.json"), clock: new ManualClock(), log: SILENT, onKeyGone() {} });
  context.after(() => keys.close());
  return { keys, dir };
}

// A watch never keeps the process alive.
const alive = setInterval(() => {}, 60_000);
after(() => clearInterval(alive));

describe("keys in a file beside the auth file", () => {
  for (const [title, text, words] of [
    ["is not there", null, /auth\.json:1: issuers\[0\]\.jwks can't be read: ENOENT/],
    ["is no JSON", "{\n]", /keys\.json:2: the set of keys has "\]"/],
    ["is no set", "{}", /keys\.json:1: the set of keys must be an object with a list "keys"/],
    ["has no key that fits", JSON.stringify({ keys: [jwkOf(PAIRS.RS256.publicKey)] }), /the set has no key for EdDSA/],
    ["is too long", " ".repeat(256 * 1024 + 1), /jwks can't be read: .*more than 262144 bytes/],
  ] as const)
    test(`are refused when it ${title}`, async (context) => {
      const { keys, dir } = keysIn(context);
      if (text !== null) writeFileSync(join(dir, "keys.json"), text);
      await assert.rejects(keys.load(parsed({ issuers: [{ ...ISSUER, jwks: "keys.json" }] })), (error: Error) => {
        assert.ok(error instanceof AuthFileError);
        assert.match(error.message, words);
        return true;
      });
    });

  test("are named, to be watched, as are those of CAs", () => {
    const url = { ...ISSUER, iss: "b", jwks: "https://id.example/", jwksCa: "/etc/ca.pem" };
    const document = parsed({ issuers: [{ ...ISSUER, jwks: "sub/keys.json" }, url, { ...url, iss: "c", jwksCa: undefined }] });
    assert.deepEqual(keyFilesOf(document, "/a/auth.json"), ["/a/sub/keys.json", "/etc/ca.pem"]);
  });

  test("are refused when the file of a CA is not there", async (context) => {
    const { keys } = keysIn(context);
    const document = parsed({ issuers: [{ ...ISSUER, jwks: "https://localhost:1/", jwksCa: "ca.pem" }] });
    await assert.rejects(keys.load(document), /issuers\[0\]\.jwksCa can't be read: ENOENT/);
  });
});

describe("a key file at a reload", () => {
  for (const [title, spoil, fault] of [
    ["is gone", unlinkSync, /^.*auth\.json:\d+: issuers\[0\]\.jwks can't be read: ENOENT: .*keys\.json/],
    ["is broken", (path: string) => writeFileSync(path, "{\n]"), /^.*keys\.json:2: the set of keys has "\]"/],
    ["is no set", (path: string) => writeFileSync(path, "[]"), /^.*keys\.json:1: the set of keys must be/],
    ["has no byte", (path: string) => writeFileSync(path, ""), /^.*keys\.json:1: the set of keys/],
  ] as const)
    test(`that ${title} holds up no revocation, and its issuer keeps its keys until it is back`, async (context) => {
      const { authority, dir, write, who, lines } = await openAuthority(context);
      const path = join(dir, "keys.json");
      spoil(path);
      write(authDocument({ tokens: undefined, revoked: [{ sub: "bob" }] }));
      for (let times = 0; times < 2; times += 1) {
        assert.equal(await authority.reload(), true);
        assert.equal(who(bearer(tokenOf("ci"))), "invalid-token");
        assert.equal(who(bearer(jwtOf("EdDSA", claimsWith({ sub: "bob" })))), "invalid-token");
        assert.equal(who(bearer(jwtOf("EdDSA"))), ALICE);
      }
      const errors = lines.filter(({ level }) => level === "error");
      assert.deepEqual([...new Set(errors.map(({ message }) => message))], [KEPT]);
      for (const line of errors) assert.match(String(line.fault), fault);
      writeFileSync(path, JSON.stringify({ keys: [jwkOf(PAIRS.ES256.publicKey, { kid: "ES256" })] }));
      assert.equal(await authority.reload(), true);
      assert.deepEqual([who(bearer(jwtOf("EdDSA"))), who(bearer(jwtOf("ES256")))], ["invalid-token", ALICE]);
    });

  test("that comes back is taken, though nobody asks", async (context) => {
    const { authority, dir, who, lines } = await openAuthority(context, authDocument(), 5);
    const path = join(dir, "keys.json");
    unlinkSync(path);
    await until(() => lines.some(({ level }) => level === "error"));
    assert.equal(who(bearer(jwtOf("EdDSA"))), ALICE);
    const back = new Promise<void>((resolve) => authority.onChange(resolve));
    writeFileSync(`${path}.new`, JSON.stringify({ keys: [] }));
    renameSync(`${path}.new`, path);
    await back;
    assert.equal(who(bearer(jwtOf("EdDSA"))), "invalid-token");
  });

  for (const [title, more, left] of [
    ["of an issuer that had another", { jwks: "other.json" }, [KEPT, ALICE]],
    ["of a new issuer", { iss: "new", jwks: "other.json" }, [NONE, "invalid-token"]],
    ["of an issuer at a URL from now on", { jwks: "https://localhost:1/", jwksCa: "other.json" }, [KEPT, ALICE]],
  ] as const)
    test(`that is not there, ${title}, holds up no revocation`, async (context) => {
      const { authority, dir, write, who, lines } = await openAuthority(context);
      write(authDocument({ tokens: undefined, issuers: [{ ...ISSUER, ...more }] }));
      assert.equal(await authority.reload(), true);
      const [line, ...others] = lines.filter(({ level }) => level === "error");
      const iss = "iss" in more ? more.iss : ISSUER.iss;
      assert.deepEqual([line?.message, others.length, who(bearer(jwtOf("EdDSA", claimsWith({ iss }))))], [left[0], 0, left[1]]);
      assert.match(String(line?.fault), /auth\.json:\d+: issuers\[0\]\.jwks(Ca)? can't be read: ENOENT/);
      assert.equal(who(bearer(tokenOf("ci"))), "invalid-token");
      assert.equal(await authority.reload(), true);
      assert.equal(lines.findLast(({ level }) => level === "error")?.message, left[0], "it is told as it was");
      if (!("jwksCa" in more)) {
        writeFileSync(join(dir, "other.json"), JSON.stringify({ keys: [jwkOf(PAIRS.EdDSA.publicKey, { kid: "EdDSA" })] }));
        assert.equal(await authority.reload(), true);
        assert.equal(who(bearer(jwtOf("EdDSA", claimsWith({ iss })))), `jwt ${iss} alice`);
      }
    });

  test("that is back as it was counts by what the auth file says of it now", async (context) => {
    const issuer = { ...ISSUER, jwks: "keys.json" };
    const { authority, dir, write, who } = await openAuthority(context, authDocument({ issuers: [issuer] }));
    unlinkSync(join(dir, "keys.json"));
    write(authDocument({ issuers: [{ ...issuer, algs: ["EdDSA", "ES256"] }] }));
    assert.equal(await authority.reload(), true);
    assert.deepEqual([who(bearer(jwtOf("EdDSA"))), who(bearer(jwtOf("ES256")))], [ALICE, "invalid-token"]);
    writeFileSync(join(dir, "keys.json"), keySet());
    assert.equal(await authority.reload(), true);
    assert.equal(who(bearer(jwtOf("ES256"))), ALICE);
  });

  test("that has no key of algorithms that the auth file now names is one without keys", async (context) => {
    const { authority, dir, write, who } = await openAuthority(context);
    const path = join(dir, "keys.json");
    writeFileSync(path, JSON.stringify({ keys: [jwkOf(PAIRS.EdDSA.publicKey, { kid: "EdDSA" })] }));
    assert.equal(await authority.reload(), true);
    write(authDocument({ issuers: [{ ...ISSUER, jwks: "keys.json", algs: ["ES256"] }], tokens: undefined }));
    assert.equal(await authority.reload(), true);
    assert.deepEqual([who(bearer(jwtOf("EdDSA"))), who(bearer(tokenOf("ci")))], ["invalid-token", "invalid-token"]);
  });

  test("is read though the auth file is not taken: a key that was taken out of it ends", async (context) => {
    const { authority, dir, write, who, lines } = await openAuthority(context);
    for (const [broken, kept, gone] of [
      ["broken", "ES256", "EdDSA"],
      ["[]", "EdDSA", "ES256"],
    ] as const) {
      write(broken);
      writeFileSync(join(dir, "keys.json"), JSON.stringify({ keys: [jwkOf(PAIRS[kept].publicKey, { kid: kept })] }));
      assert.equal(await authority.reload(), false);
      assert.deepEqual([who(bearer(jwtOf(gone))), who(bearer(jwtOf(kept)))], ["invalid-token", ALICE]);
      assert.equal(who(bearer(tokenOf("ci"))), "token ci", "what the auth file said before holds");
    }
    assert.deepEqual(
      lines.map(({ level }) => level),
      ["error", "error"],
    );
  });

  test("that is emptied as the auth file changes its algorithms is a withdrawal, and holds up no revocation", async (context) => {
    const { authority, dir, write, who } = await openAuthority(context);
    writeFileSync(join(dir, "keys.json"), '{"keys":[]}');
    write(authDocument({ issuers: [{ ...ISSUER, jwks: "keys.json", algs: ["EdDSA"] }] }));
    assert.equal(await authority.reload(), true);
    assert.equal(who(bearer(jwtOf("EdDSA"))), "invalid-token");
    write(authDocument({ issuers: [{ ...ISSUER, jwks: "keys.json", algs: ["ES256"] }], tokens: undefined }));
    assert.equal(await authority.reload(), true);
    assert.equal(who(bearer(tokenOf("ci"))), "invalid-token");
  });

  test("that has no key any more ends what its keys signed, with a warning", async (context) => {
    const { authority, dir, who, caller, lines } = await openAuthority(context);
    const alice = caller(bearer(jwtOf("EdDSA")));
    writeFileSync(join(dir, "keys.json"), '{"keys":[]}');
    assert.equal(await authority.reload(), true);
    assert.equal(authority.renew(alice), null);
    assert.equal(who(bearer(jwtOf("EdDSA"))), "invalid-token");
    const [line, ...more] = lines.filter(({ level }) => level !== "info");
    assert.deepEqual([line?.level, more], ["warn", []]);
    assert.equal(line?.message, "an issuer has no key any more; its JWTs are refused");
    assert.match(String(line.fault), /keys\.json:1: the set has no key for EdDSA, ES256, RS256$/);
    unlinkSync(join(dir, "keys.json"));
    assert.equal(await authority.reload(), true);
    assert.equal(who(bearer(jwtOf("EdDSA"))), "invalid-token", "they don't come back by its loss");
    writeFileSync(join(dir, "keys.json"), keySet());
    assert.equal(await authority.reload(), true);
    assert.equal(who(bearer(jwtOf("EdDSA"))), ALICE);
  });
});

describe("keys at a URL", { skip: canMakeCertificates() ? false : "openssl is missing" }, () => {
  for (const [what, harm] of [
    ["gone", (path: string) => unlinkSync(path)],
    ["empty", (path: string) => writeFileSync(path, "")],
    ["half written", (path: string) => truncateSync(path, 200)],
  ] as const)
    test(`of a server whose CA is ${what} stay, and hold up no revocation`, async (context) => {
      let requests = 0;
      const { url, caFile } = await httpsIssuer(context, (_request, response) => {
        requests++;
        response.end(keySet());
      });
      const issuers = [{ ...ISSUER, jwks: url, jwksCa: caFile }];
      const { authority, write, who, lines } = await openAuthority(context, authDocument({ issuers }));
      const shown = { ...bearer(jwtOf("EdDSA")), ticket: null, certificate: null };
      assert.ok(!("kind" in (await authority.authenticate(shown, null))));
      harm(caFile);
      write(authDocument({ issuers, tokens: undefined }));
      assert.equal(await authority.reload(), true);
      assert.equal(who(bearer(tokenOf("ci"))), "invalid-token");
      assert.equal(who(bearer(jwtOf("EdDSA"))), ALICE);
      assert.equal(requests, 1);
      assert.deepEqual(
        lines.filter(({ level }) => level === "error").map(({ message }) => message),
        [KEPT],
      );
    });

  test("are fetched at the start, verify a JWT, and stay when the file changes", async (context) => {
    let requests = 0;
    const { url, caFile } = await httpsIssuer(context, (_request, response) => {
      requests++;
      response.end(keySet());
    });
    const issuer = { ...ISSUER, jwks: url, jwksCa: caFile };
    const { authority, write, who } = await openAuthority(context, authDocument({ issuers: [issuer] }));
    const shown = { ...bearer(jwtOf("EdDSA")), ticket: null, certificate: null };
    const answer = await authority.authenticate(shown, null);
    assert.ok(!("kind" in answer), JSON.stringify(answer));
    write(authDocument({ issuers: [{ ...issuer, aud: "other" }] }));
    assert.equal(await authority.reload(), true);
    assert.equal(authority.renew(answer), null);
    assert.equal(who(shown), "invalid-token");
    write(authDocument({ issuers: [issuer] }));
    assert.equal(await authority.reload(), true);
    assert.equal(who(shown), "jwt https://id.example alice");
    assert.equal(requests, 1);
  });

  test("at another URL count once its CA is there again, and those at the old one no longer", async (context) => {
    const served = { old: keySet(), new: JSON.stringify({ keys: [jwkOf(PAIRS.ES256.publicKey, { kid: "ES256" })] }) };
    const { url, caFile, ca } = await httpsIssuer(context, (request, response) =>
      response.end(request.url?.endsWith("new") === true ? served.new : served.old),
    );
    const at = (path: string) => authDocument({ issuers: [{ ...ISSUER, algs: ["EdDSA", "ES256"], jwks: path, jwksCa: caFile }] });
    const { authority, write } = await openAuthority(context, at(url));
    const known = async (alg: "EdDSA" | "ES256") =>
      !("kind" in (await authority.authenticate({ ...bearer(jwtOf(alg)), ticket: null, certificate: null }, null)));
    assert.equal(await known("EdDSA"), true);
    writeFileSync(caFile, "");
    write(at(`${url}?new`));
    assert.equal(await authority.reload(), true);
    assert.equal(await known("EdDSA"), true, "until the file is there");
    writeFileSync(caFile, ca);
    assert.equal(await authority.reload(), true);
    assert.deepEqual([await known("ES256"), await known("EdDSA")], [true, false]);
  });

  test("that fail are not asked for more often because files are read again", async (context) => {
    let requests = 0;
    const { url, caFile } = await httpsIssuer(context, (_request, response) => {
      requests += 1;
      response.writeHead(500);
      response.end();
    });
    const { authority, lines } = await openAuthority(context, authDocument({ issuers: [{ ...ISSUER, jwks: url, jwksCa: caFile }] }));
    await until(() => lines.some(({ fault }) => fault === "the answer is 500, not 200"));
    for (let times = 0; times < 3; times += 1) assert.equal(await authority.reload(), true);
    assert.equal(requests, 1);
  });

  test("are not asked for by an authority that ended while it read the auth file", async (context) => {
    let requests = 0;
    const { url, caFile } = await httpsIssuer(context, (_request, response) => void response.end(keySet(), () => (requests += 1)));
    const { authority, write } = await openAuthority(context);
    const [asked, ended] = [new Barrier(), new Barrier()];
    const read = WatchedFile.read.bind(WatchedFile);
    context.mock.method(WatchedFile, "read", async (path: string, maxBytes: number) => {
      if (path === caFile) await (asked.open(), ended.opened);
      return read(path, maxBytes);
    });
    const fetched = context.mock.method(RemoteKeys.prototype, "warm");
    write(authDocument({ issuers: [{ ...ISSUER, jwks: url, jwksCa: caFile }] }));
    const reloaded = authority.reload();
    await asked.opened;
    authority.close();
    ended.open();
    await reloaded;
    assert.deepEqual([fetched.mock.callCount(), requests], [0, 0]);
  });

  test("that can't be had refuse, with the reason, and a line in the log", async (context) => {
    const { url, caFile } = await httpsIssuer(context, (_request, response) => {
      response.writeHead(500);
      response.end();
    });
    const { authority, lines } = await openAuthority(context, authDocument({ issuers: [{ ...ISSUER, jwks: url, jwksCa: caFile }] }));
    const answer = await authority.authenticate({ ...bearer(jwtOf("EdDSA")), ticket: null, certificate: null }, null);
    assert.ok("kind" in answer && answer.code === "invalid-token");
    assert.match(answer.detail, /keys of the JWT's issuer can't be had/);
    assert.deepEqual(
      lines.map(({ level, fault }) => [level, fault]),
      [["warn", "the answer is 500, not 200"]],
    );
  });

  test("follow the file if it changes while they are fetched", async (context) => {
    let answerNow: () => void = () => {};
    const asked = new Promise<void>((resolve) => (answerNow = resolve));
    const { url, caFile } = await httpsIssuer(context, (_request, response) => void asked.then(() => response.end(keySet())));
    const { authority, write } = await openAuthority(context, authDocument({ issuers: [{ ...ISSUER, jwks: url, jwksCa: caFile }] }));
    const waiting = authority.authenticate({ ...bearer(jwtOf("EdDSA")), ticket: null, certificate: null }, null);
    write(authDocument({ issuers: [{ ...ISSUER, jwks: url, jwksCa: caFile }], revoked: [{ sub: "alice" }] }));
    await authority.reload();
    answerNow();
    const answer = await waiting;
    assert.ok("kind" in answer && answer.detail.includes("revoked"));
  });

  test("are waited for when a ticket is shown that they vouch for, which ends with its key", async (context) => {
    let served = keySet();
    let held: Promise<void> | null = null;
    const { url, caFile } = await httpsIssuer(context, async (_request, response) => {
      await held;
      response.end(served);
    });
    const document = authDocument({ issuers: [{ ...ISSUER, jwks: url, jwksCa: caFile }] });
    const first = await openAuthority(context, document);
    const asker = await first.authority.authenticate({ ...bearer(jwtOf("EdDSA")), ticket: null, certificate: null }, null);
    assert.ok(!("kind" in asker), JSON.stringify(asker));
    const issued = first.authority.issueTicket(asker, { name: "a", close: false, lifetimeMs: null });
    assert.ok(issued.kind === "ticket");
    const shown = { authorization: null, ticket: issued.ticket, certificate: null };
    for (const [set, isGood] of [
      [keySet(), true],
      [JSON.stringify({ keys: [jwkOf(PAIRS.ES256.publicKey, { kid: "ES256" })] }), false],
    ] as const) {
      served = set;
      let answerNow: () => void = () => {};
      held = new Promise((resolve) => (answerNow = resolve));
      // As after a restart.
      const { authority } = await openAuthority(context, document);
      const waiting = authority.authenticate(shown, "a");
      assert.ok(waiting instanceof Promise);
      const forged = `${issued.ticket.slice(0, -2)}AA`;
      assert.ok(!(authority.authenticate({ ...shown, ticket: forged }, "a") instanceof Promise), "no wait for what is forged");
      answerNow();
      assert.equal(!("kind" in (await waiting)), isGood);
      const again = authority.authenticate(shown, "a");
      assert.ok(!(again instanceof Promise), "known from then on");
      assert.equal(!("kind" in again), isGood);
    }
  });

  test("that moved to where there are none end what they signed, once that is known", async (context) => {
    const good = await httpsIssuer(context, (_request, response) => response.end(keySet()));
    let answerNow: () => void = () => {};
    const asked = new Promise<void>((resolve) => (answerNow = resolve));
    const dead = await httpsIssuer(context, async (_request, response) => {
      await asked;
      response.writeHead(404);
      response.end();
    });
    const at = (place: { url: string; caFile: string }) =>
      authDocument({ issuers: [{ ...ISSUER, jwks: place.url, jwksCa: place.caFile }] });
    const { authority, write } = await openAuthority(context, at(good));
    const caller = await authority.authenticate({ ...bearer(jwtOf("EdDSA")), ticket: null, certificate: null }, null);
    assert.ok(!("kind" in caller), JSON.stringify(caller));
    write(at(dead));
    for (let times = 0; times < 2; times += 1) {
      assert.equal(await authority.reload(), true);
      assert.ok(authority.renew(caller) !== null, "until there is an answer");
    }
    const changed = new Promise<void>((resolve) => void authority.onChange(resolve));
    answerNow();
    await changed;
    assert.equal(authority.renew(caller), null);
  });
});
