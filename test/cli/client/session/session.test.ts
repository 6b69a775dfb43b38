import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { after, describe } from "node:test";
import { runClient, VerbServer } from "../../../helpers/client-verb.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { startStreamdir } from "../../../helpers/process.js";
import { createServer } from "../../../../src/server.js";
import { addToken } from "../../../../src/auth/auth-file-edits.js";

const open = new VerbServer({ after });

describe("a client verb", () => {
  test("finds its server by the flag, its variable, or that of others", async () => {
    const url = await open.url();
    await open.done(["create", "here"]);
    const found = async (args: readonly string[], env: Readonly<Record<string, string>>): Promise<number> =>
      (await runClient(["info", "here", ...args], { url: "", env })).status;
    assert.equal(await found(["--server", url], { STREAMDIR_URL: "http://127.0.0.1:1" }), 0);
    assert.equal(await found([], { STREAMDIR_URL: url, STREAM_URL: "http://127.0.0.1:1" }), 0);
    assert.equal(await found([], { STREAM_URL: url.replace(/v1\/stream\/$/, "") }), 0);
    assert.equal(await found(["--server", url.replace(/v1\/stream\/$/, ""), "--prefix", "/v2/"], {}), 69);
  });

  test("puts names behind the prefix of the flag, or the path of the URL, or the variable", async () => {
    await open.done(["create", "found"]);
    const url = await open.url();
    const bare = url.replace(/v1\/stream\/$/, "");
    for (const [server, args, env, status] of [
      [url, [], { STREAMDIR_PREFIX: "/v2/" }, 0],
      [url, ["--server", url], { STREAMDIR_PREFIX: "/v2/" }, 0],
      [url, ["--prefix", "/v2/"], {}, 69],
      [`${bare}v2/`, ["--prefix", "/v1/stream/"], { STREAMDIR_PREFIX: "/v2/" }, 0],
      [bare, [], { STREAMDIR_PREFIX: "/v2/" }, 69],
      [`${bare}v2/`, ["--server", bare], { STREAMDIR_PREFIX: "/v1/stream/" }, 0],
    ] as const)
      assert.equal((await runClient(["info", "found", ...args], { url: server, env })).status, status, `${server} ${args.join(" ")}`);
  });

  test("needs --prefix / for a server whose streams are at the root: a URL has that path without saying so", async (t) => {
    const root = new VerbServer(t, { prefix: "/" });
    const { origin } = new URL(await root.url());
    for (const [args, env, status] of [
      [["--prefix", "/"], {}, 0],
      [[], { STREAMDIR_PREFIX: "/" }, 0],
      [["--server", `${origin}/`], {}, 66],
    ] as const) {
      await runClient(["create", "at/root", "--prefix", "/"], { url: origin });
      assert.equal((await runClient(["info", "at/root", ...args], { url: origin, env })).status, status);
    }
  });

  test("names the variable that is no server", async () => {
    for (const [args, env, line] of [
      [["--server", "x"], { STREAMDIR_URL: "y" }, "--server must be a URL"],
      [[], { STREAMDIR_URL: "x", STREAM_URL: "y" }, "STREAMDIR_URL must be a URL"],
      [[], { STREAM_URL: "x" }, "STREAM_URL must be a URL"],
      [[], { STREAMDIR_URL: "http://127.0.0.1:1", STREAMDIR_PREFIX: "x" }, "STREAMDIR_PREFIX must be a prefix"],
      [["--prefix", "x"], { STREAMDIR_URL: "http://127.0.0.1:1", STREAMDIR_PREFIX: "y" }, "--prefix must be a prefix"],
    ] as const) {
      const { status, stderr } = await runClient(["info", "a", ...args], { url: "", env });
      assert.equal(status, 64);
      assert.ok(stderr.startsWith(`streamdir: ${line}`), stderr);
    }
  });

  test("speaks over a Unix socket", async (t) => {
    const path = join(tempDir(), "s");
    const server = await createServer({ dir: tempDir(), listen: `unix:${path}` });
    t.after(() => server.close());
    const ended = await runClient(["append", "a", "--lines", "--create"], { url: `unix:${path}`, stdin: "x\n" });
    assert.deepEqual([ended.status, ended.stderr], [0, ""]);
    assert.equal((await runClient(["cat", "a"], { url: `unix:${path}` })).stdout, "x\n");
  });

  test("shows the token of its variable or its file, and ends with 77 without a right", async (t) => {
    const auth = join(tempDir(), "auth.json");
    const token = await addToken(auth, { id: "w", allow: ["create", "append"], streams: ["a/**"], lifetimeMs: null }, Date.now());
    const server = await createServer({ dir: tempDir(), port: 0, auth });
    t.after(() => server.close());
    const { url } = server;
    const file = join(tempDir(), "token");
    writeFileSync(file, `${token}\n`);
    const env = { STREAMDIR_TOKEN: token };
    assert.equal((await runClient(["create", "a/1"], { url, env })).status, 0);
    assert.equal((await runClient(["create", "a/2", "--token-file", file], { url })).status, 0);
    assert.equal((await runClient(["create", "b"], { url, env })).status, 77);
    assert.equal((await runClient(["create", "a/3"], { url })).status, 77);
    // Who may append need not be allowed to ask for the content type.
    const blind = await runClient(["append", "a/1"], { url, env, stdin: "x" });
    assert.equal(blind.status, 77);
    assert.match(blind.stderr, /; with one that may append and not read, give --type\n$/);
    const told = await runClient(["append", "a/1", "--type", "application/octet-stream"], { url, env, stdin: "x" });
    assert.deepEqual([told.status, told.stderr], [0, ""]);
  });

  test("ends with 69 when no server is there, at once or after a while", async () => {
    const url = "http://127.0.0.1:1";
    const { status, stderr } = await runClient(["info", "a"], { url });
    assert.deepEqual([status, stderr], [69, "streamdir: http://127.0.0.1:1 does not answer (ECONNREFUSED); --wait 1m waits for it\n"]);
    const patient = await runClient(["info", "a", "--wait", "10ms"], { url });
    assert.equal(patient.status, 69);
    assert.match(patient.stderr, /; trying again\n/);
  });

  test("says so when a token goes to another machine in the clear", async () => {
    const env = { STREAMDIR_TOKEN: "t" };
    const { stderr } = await runClient(["info", "a"], { url: "http://streams.invalid:1", env });
    assert.match(stderr, /^streamdir: the token goes to http:\/\/streams\.invalid:1 unencrypted\n/);
  });

  const file = join(tempDir(), "token");
  writeFileSync(file, "two words");
  for (const [args, env, line] of [
    [["--server", "ftp://a"], {}, /--server must be a URL like/],
    [["--server", "http://me:secret@a"], {}, /--server must have no name and no password: see --token-file/],
    [["--token-file", join(tempDir(), "none")], {}, /--token-file: ENOENT/],
    [["--token-file", file], {}, /--token-file holds no token/],
    [[], { STREAMDIR_TOKEN: "a\nb" }, /STREAMDIR_TOKEN holds no token/],
    [["--wait", "soon"], {}, /--wait must be a time like 30d or 1h, not "soon"/],
    [["--tokenfile", "a"], {}, /unknown flag "--tokenfile"; did you mean --token-file\?/],
    [["b"], {}, /streamdir info takes no "b"; it has only NAME/],
  ] as const)
    test(`refuses ${args.join(" ")}${JSON.stringify(env)} with 64, and repeats no secret`, async () => {
      const { status, stdout, stderr } = await runClient(["info", "a", ...args], { url: "http://127.0.0.1:1", env });
      assert.deepEqual([status, stdout], [64, ""]);
      assert.match(stderr, line);
      assert.doesNotMatch(stderr, /two words/);
    });

  test("says of a URL where a stream's name belongs how both are written", async () => {
    const { status, stderr } = await runClient(["cat", "https://streams.example/v1/stream/a"], { url: "http://127.0.0.1:1" });
    const line = '"https://streams.example/v1/stream/a": this is a URL: write the name alone, and the server with --server';
    assert.deepEqual([status, stderr], [64, `streamdir: ${line}\n`]);
  });

  test("is a command, with help of its own", async (t) => {
    const help = await startStreamdir(t, ["tail", "--help"]).ended;
    assert.deepEqual([help.status, help.stderr], [0, ""]);
    assert.match(help.stdout, /^Usage: streamdir tail NAME \[flags\]\n/);
    assert.deepEqual(
      help.stdout.split("\n").filter((line) => line.length > 100),
      [],
    );
    const run = await startStreamdir(t, ["cat", "none"], { env: { STREAMDIR_URL: await open.url() } }).ended;
    assert.equal(run.status, 66);
  });
});
