import assert from "node:assert/strict";
import { join } from "node:path";
import test, { after, describe, type TestContext } from "node:test";
import { addToken } from "../../../../src/auth/auth-file-edits.js";
import { createServer, type ServerOptions } from "../../../../src/server.js";
import { runClient, VerbServer, type ClientRun, type ClientWorld } from "../../../helpers/client-verb.js";
import { losingProxy } from "../../../helpers/losing-proxy.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const INPUT = "abcdefghijklmnopqrstuvwxyz";
const AUTH = join(tempDir(), "auth.json");
const small = new VerbServer({ after }, { maxAppendBytes: 4 });
await addToken(AUTH, { id: "other", allow: ["read"], streams: ["**"], lifetimeMs: null }, Date.now());

/** A directory whose server can be replaced, behind a proxy that loses the answer to the first append. */
class Changing {
  readonly #dir = tempDir();
  #server = createServer({ dir: this.#dir, port: 0 });
  #url = "";

  /** After that append the directory is served with the options `next`, and `then` is called. */
  static async start(t: TestContext, next: Partial<ServerOptions>, then = async (): Promise<void> => {}): Promise<Changing> {
    const changing = new Changing();
    t.after(async () => (await changing.#server).close());
    let isLost = false;
    changing.#url = await losingProxy(
      t,
      async () => (await changing.#server).url,
      async (method) => {
        if (isLost || method !== "POST") return false;
        isLost = true;
        await changing.serve(next);
        await then();
        return true;
      },
    );
    return changing;
  }

  async serve(options: Partial<ServerOptions>): Promise<void> {
    await (await this.#server).close();
    this.#server = createServer({ dir: this.#dir, port: 0, ...options });
    await this.#server;
  }

  run(line: string, world: Partial<ClientWorld> = {}): Promise<ClientRun> {
    return runClient(line.split(" "), { url: this.#url, stdin: INPUT, ...world });
  }
}

function markOf({ stderr }: ClientRun): string {
  return /--resume (\S+)\n$/.exec(stderr)?.[1] ?? assert.fail(stderr);
}

describe("an append that had no answer, and was refused when it was sent again,", () => {
  for (const [title, next, status] of [
    ["as a token is asked for", { auth: AUTH }, 77],
    ["as the server is read-only", { readOnly: true }, 65],
  ] as const)
    for (const piece of [3, 20])
      test(`${title}, is there once after it goes on with --piece ${piece}`, async (t) => {
        const server = await Changing.start(t, next);
        const first = await server.run("append s --create --piece 8");
        assert.equal(first.status, status, first.stderr);
        const mark = markOf(first);
        const again = await server.run(`append s --type application/octet-stream --piece ${piece} --resume ${mark}`);
        assert.equal(again.status, status, again.stderr);
        await server.serve({});
        const last = await server.run(`append s --piece ${piece} --resume ${markOf(again)}`);
        assert.equal(last.status, 0, last.stderr);
        assert.equal((await server.run("cat s")).stdout, INPUT);
        assert.match(mark, /^\w+:0:0:0:8$/);
        assert.equal(markOf(again), mark);
      });
});

test("an append that had no answer is there once where the server takes less by then", async (t) => {
  const server = await Changing.start(t, { maxAppendBytes: 4 });
  const { status, stderr } = await server.run("append s --create --piece 8");
  assert.equal(status, 0, stderr);
  assert.equal((await server.run("cat s")).stdout, INPUT);
});

test("an append that had no answer is known to be stored where the server takes less, and its stream is closed", async (t) => {
  const server = await Changing.start(t, { maxAppendBytes: 4 }, async () => {
    assert.equal((await server.run("close s")).status, 0);
  });
  const { status, stderr } = await server.run("append s --create --piece 30");
  assert.equal(status, 0, stderr);
  assert.equal((await server.run("cat s")).stdout, INPUT);
});

describe("an append whose stream somebody closes while its answer is lost", () => {
  for (const [piece, status, stored] of [
    [30, 0, INPUT],
    [3, 65, "abc"],
  ] as const)
    test(`is known to be stored, with --piece ${piece}`, async (t) => {
      const server = new VerbServer(t);
      let isLost = false;
      const url = await losingProxy(
        t,
        () => server.url(),
        async (method) => {
          if (isLost || method !== "POST") return false;
          isLost = true;
          await server.done(["close", "s"]);
          return true;
        },
      );
      const { stderr, ...run } = await runClient(["append", "s", "--create", "--piece", String(piece)], { url, stdin: INPUT });
      assert.equal(run.status, status, stderr);
      assert.equal(await server.done(["cat", "s"]), stored);
      if (status === 65) assert.match(stderr, /closed.*; 3 bytes of the input are stored\n$/);
    });
});

test("an append that was refused at once goes on with smaller pieces", async () => {
  // One line can't be cut.
  const first = await small.run(["append", "s", "--create", "--lines"], { stdin: INPUT });
  assert.match(markOf(first), /^\w+:0:0:0:0$/);
  await small.run(["append", "s", "--piece", "4", "--type", "text/plain", "--resume", markOf(first)], { stdin: INPUT });
  assert.equal(await small.done(["cat", "s"]), INPUT);
});

test("an append that is stopped before it has sent again what may be stored says so again", async (t) => {
  const server = await Changing.start(t, {});
  await server.run("create s");
  let interrupt = (): void => {};
  const stdin = {
    async *[Symbol.asyncIterator]() {
      yield Buffer.from("ab");
      interrupt();
      await Promise.resolve();
    },
  };
  const ended = await server.run("append s --resume p:0:3:0:8", { stdin, onStart: (send) => (interrupt = () => send("SIGINT")) });
  assert.equal(ended.status, 130);
  assert.equal(markOf(ended), "p:0:3:0:8");
});

test("an append that goes on after an older backup was restored says that the server lacks what it acknowledged", async () => {
  await small.done(["append", "restored", "--create", "--piece", "4", "--resume", "p:0:0:0:0"], "abcd");
  const { status, stderr } = await small.run(["append", "restored", "--piece", "4", "--resume", "p:0:2:8:0"], { stdin: INPUT });
  assert.equal(status, 65);
  assert.match(stderr, /\(producer-gap\); the server acknowledged 8 bytes of the input, and no longer knows of all of them: /);
  assert.match(stderr, /restored from an older backup.* without --resume, or with a new --state\n$/);
  assert.doesNotMatch(stderr, /are stored|go on with the same input/);
});
