import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import test, { after, describe } from "node:test";
import { decodeState, encodeState, StateFile, type AppendState } from "../../../../src/cli/client/append/state-file.js";
import { VerbServer } from "../../../helpers/client-verb.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const server = new VerbServer({ after });

function stateAt(path: string): AppendState {
  return decodeState(readFileSync(path, "utf8")) ?? assert.fail("it is a state");
}

async function opened(path: string, stream: string): Promise<StateFile> {
  const file = await StateFile.open(path, stream);
  assert.ok(!("kind" in file), JSON.stringify(file));
  return file;
}

test("a state is read as it was written, and nothing else is one", () => {
  const mark = { id: "p", epoch: 0, seq: 3, at: 100, length: 20 };
  const state: AppendState = { stream: "http://h/v1/stream/a", mark, stage: "done", sha256: "0".repeat(64) };
  assert.deepEqual(decodeState(encodeState(state)), state);
  const whole = JSON.parse(encodeState(state));
  for (const text of [
    "",
    "p:0:3:100:20",
    "null",
    "{}",
    JSON.stringify({ ...whole, mark: "p" }),
    JSON.stringify({ ...whole, stage: "over" }),
    JSON.stringify({ ...whole, stream: 1 }),
    JSON.stringify({ ...whole, sha256: "00" }),
  ])
    assert.equal(decodeState(text), null, text);
});

describe("append --state", () => {
  test("makes a file for its owner alone, and says in it that the input is stored: run again, nothing more is", async () => {
    const path = join(tempDir(), "state");
    await server.done(["append", "once", "--lines", "--create", "--state", path], "a\nb\n");
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const { mark, stage } = stateAt(path);
    assert.deepEqual([mark.seq, mark.at, mark.length, stage], [1, 4, 0, "done"]);
    await server.done(["append", "once", "--lines", "--create", "--state", path], "a\nb\n");
    assert.equal(await server.done(["cat", "once"]), "a\nb\n");
  });

  test("goes on where the input has grown", async () => {
    const path = join(tempDir(), "state");
    await server.done(["append", "grows", "--lines", "--create", "--state", path], "a\n");
    await server.done(["append", "grows", "--lines", "--create", "--state", path], "a\nb\n");
    assert.equal(await server.done(["cat", "grows"]), "a\nb\n");
  });

  test("names each piece before it sends it, and sends it again as it was", async () => {
    const path = join(tempDir(), "state");
    const stream = `${new URL(await server.url()).origin}/v1/stream/pending`;
    const file = await opened(path, stream);
    await file.sending(file.mark, 0, Buffer.from("a\nb\n"));
    assert.deepEqual([file.mark.at, file.mark.length], [0, 4]);
    // Stored, and nobody has heard it.
    const { id } = file.mark;
    await server.done(["append", "pending", "--lines", "--create", "--resume", `${id}:0:0:0:4`], "a\nb\n");
    await server.done(["append", "pending", "--lines", "--state", path, "--piece", "1KiB"], "a\nb\nc\n");
    assert.equal(await server.done(["cat", "pending"]), "a\nb\nc\n");
  });

  test("names the file where it is stopped, and goes on with it", async () => {
    const path = join(tempDir(), "state");
    const { status, stderr } = await server.interruptedAppend("cut", ["--state", path]);
    assert.equal(status, 130);
    assert.match(stderr, /^streamdir: stopped; 5 bytes of the input are stored: go on with the same input and --state "/);
    await server.done(["append", "cut", "--lines", "--state", path], "kept\nhalf of it\n");
    assert.equal(await server.done(["cat", "cut"]), "kept\nhalf of it\n");
  });

  for (const [title, input] of [
    ["differs", "x\nb\nc\n"],
    ["is shorter", "a\n"],
    ["is empty", ""],
  ] as const)
    test(`refuses an input that ${title}, and stores nothing of it`, async () => {
      const path = join(tempDir(), "state");
      await server.done(["append", title, "--lines", "--create", "--state", path], "a\nb\n");
      const { status, stderr } = await server.run(["append", title, "--lines", "--state", path], { stdin: input });
      assert.equal(status, 65);
      assert.match(stderr, /^streamdir: this is not the same input: /);
      assert.equal(await server.done(["cat", title]), "a\nb\n");
    });

  test("closes once, and refuses more for a stream that may be closed", async () => {
    const path = join(tempDir(), "state");
    await server.done(["append", "closes", "--lines", "--create", "--close", "--state", path], "a\n");
    assert.equal(stateAt(path).stage, "closed");
    await server.done(["append", "closes", "--lines", "--create", "--close", "--state", path], "a\n");
    // Killed before it heard of the closure.
    const state = stateAt(path);
    writeFileSync(path, encodeState({ ...state, stage: "closing", mark: { ...state.mark, seq: state.mark.seq - 1 } }));
    const more = await server.run(["append", "closes", "--lines", "--close", "--state", path], { stdin: "a\nb\n" });
    assert.equal(more.status, 65, more.stderr);
    assert.match(more.stderr, /this is not the same input: .* goes on after its end/);
    await server.done(["append", "closes", "--lines", "--close", "--state", path], "a\n");
    assert.equal(stateAt(path).stage, "closed");
  });

  test("makes no stream anew that it has stored data in", async () => {
    const path = join(tempDir(), "state");
    await server.done(["append", "gone", "--lines", "--create", "--state", path], "a\n");
    await server.done(["rm", "gone", "--yes"]);
    const { status } = await server.run(["append", "gone", "--lines", "--create", "--state", path], { stdin: "a\nb\n" });
    assert.equal(status, 66);
  });

  test("ends with 75 while another run has the file", async () => {
    const path = join(tempDir(), "state");
    let interrupt = (): void => {};
    const run = server.run(["append", "busy", "--create", "--state", path], {
      stdin: new Readable({ read: () => {} }),
      onStart: (signal) => (interrupt = () => signal("SIGINT")),
    });
    while (!existsSync(path)) await server.run(["ls"]);
    const second = await server.run(["append", "busy", "--create", "--state", path], { stdin: "x" });
    assert.equal(second.status, 75);
    assert.match(second.stderr, /^streamdir: --state: \S+\.lock is there: another command changes the file/);
    interrupt();
    assert.equal((await run).status, 130);
    await server.done(["append", "busy", "--create", "--state", path], "x");
    assert.equal(await server.done(["cat", "busy"]), "x");
  });

  for (const [title, args, text, line] of [
    ["a file that is no state", [], "p:0:0:0:0\n", /^streamdir: --state ".*" is not a file that append --state has made\n$/],
    ["an empty file", [], "", /is not a file that append --state has made\n$/],
    ["--resume beside it", ["--resume", "p:0:0:0:0"], null, /--resume and --state exclude each other: give one of them\n$/],
  ] as const)
    test(`ends with 64 for ${title}`, async () => {
      const path = join(tempDir(), "state");
      if (text !== null) writeFileSync(path, text);
      const ended = await server.run(["append", "wrong", "--create", "--state", path, ...args], { stdin: "x" });
      assert.equal(ended.status, 64);
      assert.match(ended.stderr, line);
      assert.equal(existsSync(path) ? readFileSync(path, "utf8") : null, text);
      assert.equal((await server.run(["cat", "wrong"])).status, 66);
    });

  test("ends with 64 for a file of another stream, of another server, or in no directory", async () => {
    const path = join(tempDir(), "state");
    await server.done(["append", "one", "--create", "--state", path], "x");
    const { status, stderr } = await server.run(["append", "other", "--create", "--state", path], { stdin: "x" });
    assert.equal(status, 64);
    assert.match(stderr, /--state ".*" is of http:\S+\/one, and not of http:\S+\/other\n$/);
    assert.equal((await server.run(["append", "one", "--server", "http://other.test", "--state", path])).status, 64);
    const nowhere = await server.run(["append", "one", "--state", join(path, "below")]);
    assert.deepEqual([nowhere.status, nowhere.stderr.startsWith("streamdir: --state: ENOTDIR")], [64, true]);
  });
});
