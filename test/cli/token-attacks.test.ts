import assert from "node:assert/strict";
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { addToken, revokeToken } from "../../src/auth/auth-file-edits.js";
import { parseAuthFile } from "../../src/auth/auth-file.js";
import { Revocations } from "../../src/auth/revocations.js";
import { parseToken, Tokens } from "../../src/auth/token.js";
import { WatchedFile } from "../../src/ops/watched-file.js";
import { startStreamdir } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const DAY_MS = 86_400_000;

function parsed(file: string) {
  return parseAuthFile({ file, text: readFileSync(file, "utf8") });
}

/** Whether the file takes a token. */
function takes(file: string, token: string, nowMs = Date.now()): boolean {
  const { tokens, revoked } = parsed(file);
  const parts = parseToken(token);
  return parts !== null && new Tokens(tokens, new Revocations(revoked)).authenticate(parts, nowMs) !== null;
}

/** The real program, as an attacker's script calls it. */
async function token(scope: TestContext, task: string, file: string, ...args: readonly string[]) {
  return startStreamdir(scope, ["token", task, "--auth", file, ...args]).ended;
}

function add(scope: TestContext, file: string, id: string, ...more: readonly string[]) {
  return token(scope, "add", file, "--id", id, "--allow", "read", "--streams", "a", ...more);
}

describe("streamdir token, attacked:", () => {
  test("words that mean something elsewhere are refused, and nothing is made", async (context) => {
    const file = join(tempDir(), "auth.json");
    const attempts: readonly (readonly string[])[] = [
      ...["__proto__", "a\nb", "../a"].map((id) => ["--id", id, "--streams", "a"]),
      ...["{sub}", "a/../b", "a\u001b[2J", "a".repeat(1025)].map((pattern) => ["--id", "x", "--streams", pattern]),
      ...["0s", "1e3", "9999999999999d"].map((time) => ["--id", "x", "--streams", "a", "--expires", time]),
    ];
    for (const attempt of attempts) {
      const ended = await token(context, "add", file, "--allow", "read", ...attempt);
      assert.deepEqual([ended.status, ended.stdout], [64, ""], JSON.stringify(attempt));
      assert.match(ended.stderr, /^streamdir: [\x20-\x7e\u00a0-\uffff]*\n$/, "one line, with nothing that a terminal obeys");
    }
    assert.throws(() => statSync(file));
  });

  test("ids that objects have names for are ids", async (context) => {
    const file = join(tempDir(), "auth.json");
    for (const id of ["constructor", "toString", "0"]) {
      const made = (await add(context, file, id)).stdout.trim();
      assert.equal(takes(file, made), true, id);
      assert.equal((await token(context, "revoke", file, "--id", id)).status, 0);
      assert.equal(takes(file, made), false, id);
    }
  });

  test("the longest life ends before the calendar does, and the shortest at once", async (context) => {
    const file = join(tempDir(), "auth.json");
    const long = (await add(context, file, "long", "--expires", "99999999d")).stdout.trim();
    const short = (await add(context, file, "short", "--expires", "1ms")).stdout.trim();
    assert.deepEqual(
      parsed(file).tokens.map(({ expiresMs }) => expiresMs <= Date.UTC(10_000, 0, 1)),
      [true, true],
    );
    assert.deepEqual([takes(file, long), takes(file, long, Date.UTC(10_000, 0, 1)), takes(file, short)], [true, false, false]);
  });

  test("what is no file is refused in one line", async (context) => {
    const dir = tempDir();
    const circle = join(dir, "circle");
    symlinkSync(circle, circle);
    for (const place of [dir, "/dev/zero", circle, join(dir, "none", "auth.json")])
      for (const task of ["list", "add"]) {
        const ended = task === "list" ? await token(context, "list", place) : await add(context, place, "x");
        assert.equal(ended.status, 1, `${task} ${place}`);
        assert.match(ended.stderr, /^streamdir: [^\n]*\n$/);
      }
    assert.deepEqual(readdirSync(dir), ["circle"]);
  });

  test("a link stays a link, what it names gets the change, and neither is ever for more people than before", async (context) => {
    const dir = tempDir();
    mkdirSync(join(dir, "real"));
    const [link, real] = [join(dir, "auth.json"), join(dir, "real", "auth.json")];
    symlinkSync(real, link);
    const first = (await add(context, link, "a")).stdout.trim();
    assert.equal(statSync(real).mode & 0o777, 0o600, "made by a link that led nowhere");
    chmodSync(real, 0o440);
    const second = (await add(context, link, "b")).stdout.trim();
    assert.ok(lstatSync(link).isSymbolicLink());
    assert.equal(statSync(real).mode & 0o7777, 0o440);
    assert.deepEqual([takes(real, first), takes(real, second)], [true, true]);
    assert.deepEqual(readdirSync(dir).sort(), ["auth.json", "real"]);
    assert.deepEqual(readdirSync(join(dir, "real")), ["auth.json"]);
  });

  test("a secret that all may read is said to be one", async (context) => {
    const file = join(tempDir(), "auth.json");
    writeFileSync(file, "{}", { mode: 0o644 });
    chmodSync(file, 0o644);
    assert.match((await token(context, "key", file, "--id", "k")).stderr, /^Every user of this machine may read its secret/);
    chmodSync(file, 0o600);
    assert.equal((await token(context, "key", file, "--id", "l")).stderr, "");
  });

  test("many commands at once lose nothing, and end every token that they revoke", async (context) => {
    const file = join(tempDir(), "auth.json");
    const old = await Promise.all(
      ["r0", "r1", "r2"].map((id) => addToken(file, { id, streams: ["a"], allow: ["read"], lifetimeMs: null }, Date.now())),
    );
    const made = Promise.all(["n0", "n1", "n2"].map((id) => add(context, file, id)));
    const revoked = Promise.all(["r0", "r1", "r2"].map((id) => token(context, "revoke", file, "--id", id)));
    const same = Promise.all([add(context, file, "twin"), add(context, file, "twin")]);
    for (const { status, stderr } of [...(await made), ...(await revoked)]) assert.equal(status, 0, stderr);
    assert.deepEqual((await same).map(({ status }) => status).sort(), [0, 1], "one id is one token");
    for (const one of old) assert.equal(takes(file, one), false);
    for (const { stdout } of await made) assert.equal(takes(file, stdout.trim()), true);
    assert.deepEqual(readdirSync(join(file, "..")), ["auth.json"]);
  });

  test("what an editor saves while a command is at work is kept", async (context) => {
    const file = join(tempDir(), "auth.json");
    const wanted = { streams: ["a"], allow: ["read"], lifetimeMs: null };
    const stolen = await addToken(file, { id: "stolen", ...wanted }, Date.now() - DAY_MS);
    const read = WatchedFile.read.bind(WatchedFile);
    let reads = 0;
    context.mock.method(WatchedFile, "read", async (path: string, maxBytes: number) => {
      const text = await read(path, maxBytes);
      reads += 1;
      if (reads === 1) writeFileSync(file, JSON.stringify({ ...JSON.parse(text), revoked: [{ id: "stolen" }] }));
      return text;
    });
    const made = await addToken(file, { id: "new", ...wanted }, Date.now());
    assert.deepEqual([takes(file, stolen), takes(file, made)], [false, true], "the revocation is not overwritten");
  });

  test("a file that changes all the time is left alone", async (context) => {
    const file = join(tempDir(), "auth.json");
    const wanted = { streams: ["a"], allow: ["read"], lifetimeMs: null };
    await addToken(file, { id: "old", ...wanted }, Date.now());
    const read = WatchedFile.read.bind(WatchedFile);
    let spaces = "";
    context.mock.method(WatchedFile, "read", async (path: string, maxBytes: number) => {
      const text = await read(path, maxBytes);
      if (path === file) writeFileSync(file, `${text.trimEnd()}${(spaces += " ")}`);
      return text;
    });
    await assert.rejects(revokeToken(file, "old", Date.now()), /changes all the time: nothing was done/);
    assert.equal(parsed(file).tokens.length, 1);
  });
});
