import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { childOf, container, lacksInjection, lacksNamespaces } from "../helpers/machine.js";
import { startStreamdir, type TestScope } from "../helpers/process.js";
import { RealServer } from "../helpers/real-server.js";
import { tempDir } from "../helpers/temp-dir.js";

const TEXT = { "Content-Type": "text/plain" };

async function put(server: RealServer, name: string): Promise<void> {
  assert.equal((await server.ask("PUT", name, { headers: TEXT })).status, 201);
}

async function append(server: RealServer, name: string, body: string): Promise<void> {
  assert.equal((await server.ask("POST", name, { headers: TEXT, body })).status, 204);
}

async function contentOf(server: RealServer, name: string): Promise<string> {
  return (await server.ask("GET", name)).body;
}

/** Starts one more server on the directory, which must be refused, and gives what it said. */
async function refusal(scope: TestScope, dir: string, under: readonly string[] = [], args: readonly string[] = []): Promise<string> {
  const process = startStreamdir(scope, ["serve", dir, "--port", "0", ...args], { under });
  const isServing = await process.stdoutLine(/http:/).then(
    () => true,
    () => false,
  );
  assert.ok(!isServing, "a second server has taken the directory");
  const { status, stdout, stderr } = await process.ended;
  assert.deepEqual([status, stdout], [1, ""], stderr);
  assert.equal(stderr.split("\n").length, 2, "one line");
  return stderr;
}

/** What is left of the lock, and of those who asked for it. */
function lockFiles(dir: string): string[] {
  return readdirSync(dir).filter((name) => name.startsWith("lock"));
}

describe("two containers that share a volume", { skip: lacksNamespaces }, () => {
  for (const host of [hostname(), "another"]) {
    test(`a second server is refused in another pid namespace${host === hostname() ? " with the same host name" : ""}, and nothing of the first is lost`, async (t) => {
      const server = new RealServer(t, []);
      await server.start(container(hostname()));
      await put(server, "s");
      await append(server, "s", "one;");
      const inUse = /^streamdir: the directory is in use by process 1 on .* in another container \(/;
      assert.match(await refusal(t, server.dir, container(host)), inUse);
      assert.match(await refusal(t, server.dir, container(host), ["--force-unlock"]), inUse);
      const verbs = host === hostname() ? [["verify"], ["repair"], ["repair", "--yes", "--force-unlock"]] : [];
      for (const verb of verbs) {
        const { status, stdout, stderr } = await startStreamdir(t, [...verb, server.dir], { under: container(host) }).ended;
        assert.deepEqual([status, stdout], [1, ""]);
        assert.match(stderr, inUse);
      }
      await append(server, "s", "two;");
      process.kill(childOf(server.process.pid), "SIGTERM");
      assert.equal((await server.process.ended).status, 0);
      assert.deepEqual(lockFiles(server.dir), []);
      await server.start();
      assert.equal(await contentOf(server, "s"), "one;two;");
      await server.stop();
      await server.verify();
    });
  }

  test("a container that crashed starts by itself, also under another host name", async (t) => {
    const server = new RealServer(t, []);
    for (const host of ["first", "first", "second"]) {
      await server.start(container(host));
      if (server.lives === 1) await put(server, "s");
      await append(server, "s", `${host};`);
      server.process.kill("SIGKILL");
      const { stderr } = await server.process.ended;
      assert.doesNotMatch(stderr, /warn/);
    }
    assert.match((await startStreamdir(t, ["repair", server.dir, "--yes"]).ended).stdout, /nothing is left|nothing to repair/);
    await server.start(container("third"));
    assert.equal(await contentOf(server, "s"), "first;first;second;");
  });
});

describe("a file system that takes no sockets", { skip: lacksInjection || lacksNamespaces }, () => {
  // The first thing that the server binds is the socket of its lock.
  const noSockets = ["strace", "-f", "-o", "/dev/null", "-e", "trace=bind", "-e", "inject=bind:error=EPERM:when=1"];

  test("has a lock all the same, and the server says what that can't tell", async (t) => {
    const server = new RealServer(t, []);
    await server.start(noSockets);
    assert.match(
      await server.process.stderrLine(/takes no sockets/),
      /warn .*a server in another container can't be told from one that has ended.*EPERM/,
    );
    const { pid, socket } = JSON.parse(readFileSync(join(server.dir, "lock"), "utf8"));
    assert.equal(socket, null);
    await put(server, "s");
    assert.match(await refusal(t, server.dir), new RegExp(`in use by process ${pid} on `));
    assert.match(await refusal(t, server.dir, [], ["--force-unlock"]), /it runs on this machine/);
    const unseen = await refusal(t, server.dir, container(hostname()));
    assert.match(unseen, /in use by process \d+ on .* in another container .*it has no socket.*--force-unlock/);
    process.kill(pid, "SIGKILL");
    await server.process.ended;
    await server.start();
    assert.equal((await server.stop()).status, 0);
    assert.deepEqual(lockFiles(server.dir), []);
  });
});

describe("one machine", () => {
  test("a killed server is followed by the next, which leaves nothing of it", async (t) => {
    const server = new RealServer(t, []);
    await server.start();
    await put(server, "s");
    await server.killAndRestart();
    assert.equal(lockFiles(server.dir).length, 2, "the lock and its socket");
    assert.equal((await server.stop()).status, 0);
    assert.deepEqual(lockFiles(server.dir), []);
  });

  test("a stopped server is a living one", async (t) => {
    const server = new RealServer(t, []);
    await server.start();
    await put(server, "s");
    server.process.kill("SIGSTOP");
    const inUse = new RegExp(`in use by process ${server.process.pid} on `);
    for (let time = 0; time < 3; time += 1) assert.match(await refusal(t, server.dir, [], time === 2 ? ["--force-unlock"] : []), inUse);
    assert.match((await startStreamdir(t, ["verify", server.dir]).ended).stderr, inUse);
    server.process.kill("SIGCONT");
    await append(server, "s", "still mine");
    assert.equal((await server.stop()).status, 0);
  });

  test("of several that start at once on what a crash has left, one serves and the others name it", async (t) => {
    const server = new RealServer(t, []);
    await server.start();
    await put(server, "s");
    server.process.kill("SIGKILL");
    await server.process.ended;
    const started = Array.from({ length: 6 }, () => startStreamdir(t, [server.dir, "--port", "0", "--log-format", "text"]));
    const lines = await Promise.all(started.map((process) => process.stdoutLine(/http:/).catch(() => null)));
    const serving = started.filter((_, index) => lines[index] !== null);
    assert.equal(serving.length, 1);
    const [winner] = serving;
    for (const process of started)
      if (process !== winner) assert.match((await process.ended).stderr, new RegExp(`in use by process ${winner?.pid} on `));
    assert.equal(lockFiles(server.dir).length, 2);
    winner?.kill("SIGTERM");
    assert.equal((await winner?.ended)?.status, 0);
    await server.verify();
  });

  test("a path longer than a socket's address is locked as any other", async (t) => {
    const dir = join(tempDir(), ..."abcd".split("").map((letter) => letter.repeat(100)), "data");
    const server = new RealServer(t, [], dir);
    await server.start();
    await put(server, "s");
    assert.match(await refusal(t, dir), new RegExp(`in use by process ${server.process.pid} on `));
    const socket = join(dir, JSON.parse(readFileSync(join(dir, "lock"), "utf8")).socket);
    assert.equal(statSync(socket).mode & 0o777, 0o600);
    await server.killAndRestart();
    assert.equal((await server.stop()).status, 0);
    assert.deepEqual(lockFiles(dir), []);
  });

  test("a server whose socket was removed keeps its directory, and nobody is told to remove its lock", async (t) => {
    const server = new RealServer(t, []);
    await server.start();
    await put(server, "s");
    rmSync(join(server.dir, JSON.parse(readFileSync(join(server.dir, "lock"), "utf8")).socket));
    const stopFirst = new RegExp(
      `in use by process ${server.process.pid} on .*: it runs and has this directory open, though its socket was removed; stop it first\n$`,
    );
    for (const args of [[], ["--force-unlock"]]) assert.match(await refusal(t, server.dir, [], args), stopFirst);
    assert.match((await startStreamdir(t, ["verify", server.dir]).ended).stderr, stopFirst);
    await append(server, "s", "kept");
    assert.equal((await server.stop()).status, 0);
    assert.deepEqual(lockFiles(server.dir), []);
    await server.start();
    assert.equal(await contentOf(server, "s"), "kept");
    assert.equal((await server.stop()).status, 0);
  });

  test("a copy of a directory in use is one of its own", async (t) => {
    const server = new RealServer(t, []);
    await server.start();
    await put(server, "s");
    await append(server, "s", "kept");
    const copies = ["with its socket", "without"].map((name) => join(tempDir(), name));
    // What is about to take another file's place may be gone before it is copied.
    for (const copy of copies) cpSync(server.dir, copy, { recursive: true, filter: (path) => !/\.(?:sock|new)$/.test(path) });
    const [whole = "", bare = ""] = copies;
    const { socket } = JSON.parse(readFileSync(join(whole, "lock"), "utf8"));
    // As cp -a and rsync copy a socket: a name that nobody listens on.
    execFileSync("cp", ["-a", join(server.dir, socket), join(whole, socket)]);
    const copied = new RealServer(t, [], whole);
    await copied.start();
    assert.equal(await contentOf(copied, "s"), "kept");
    await copied.stop();
    assert.match(await refusal(t, bare), /its socket is not here; in a copy of its directory, remove this file/);
    rmSync(join(bare, "lock"));
    const restored = new RealServer(t, [], bare);
    await restored.start();
    assert.equal(await contentOf(restored, "s"), "kept");
    await restored.stop();
    assert.equal((await server.stop()).status, 0);
  });
});
