import assert from "node:assert/strict";
import test, { after } from "node:test";
import { describe as look } from "../../../../src/cli/client/streams/info.js";
import { PIECE_BYTES } from "../../../../src/cli/client/archive/piece-cuts.js";
import { survey, type Source } from "../../../../src/cli/client/archive/survey.js";
import { clientTask, type Session } from "../../../../src/cli/client/session/session.js";
import { Given } from "../../../../src/cli/command/task.js";
import { forkOf } from "../../../helpers/archive-of.js";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after }, { chunkBytes: 1024 });

/** Runs something with a session, as a verb has one. */
async function inSession<T>(run: (session: Session) => Promise<T>): Promise<T> {
  let result: T | undefined;
  const task = clientTask({
    name: "test",
    summary: "",
    run: async (session) => {
      result = await run(session);
      return null;
    },
  });
  const output = { write: () => true };
  const nothing = (): void => {};
  const surroundings = { env: {}, stdin: process.stdin, stdout: output, stderr: output, on: nothing, off: nothing, exit: nothing };
  assert.equal(await task.run(new Given(new Map([["server", [await server.url()]]])), surroundings), 0);
  assert.ok(result !== undefined);
  return result;
}

/** What a survey finds of `name`, as a fork of `source`. */
function surveyed(name: string, source: Source | null) {
  return inSession(async (session) => {
    const stream = await look(session, name);
    assert.ok(!("kind" in stream));
    const found = await survey(session, stream, source, () => {});
    assert.ok(found.kind === "surveyed");
    return found;
  });
}

const lines = (from: number, to: number): string => Array.from({ length: to - from }, (_, at) => `"line ${from + at}"\n`).join("");

test("of a fork only what its source does not have is kept, message by message", async () => {
  await server.done(["append", "s", "--json", "--create", "--piece", "100"], lines(0, 300));
  const whole = Buffer.byteLength(lines(0, 300));
  for (const at of [1, 150, 299, 300]) {
    const name = `fork-${at}`;
    await server.done(["fork", "s", name, "--skip", String(at)]);
    await server.done(["append", name], '"line other"\n');
    const { head } = await surveyed(name, { name: "s", whole });
    assert.deepEqual(head.fork, forkOf("s", at, lines(0, at)));
    assert.equal(head.bytes, '"line other"\n'.length);
  }
});

test("a fork that has what its source got later begins there only as far as the source is exported", async () => {
  await server.done(["append", "grows", "--json", "--create"], lines(0, 10));
  await server.done(["fork", "grows", "grown"]);
  const { head } = await surveyed("grown", { name: "grows", whole: Buffer.byteLength(lines(0, 4)) });
  assert.deepEqual(head.fork, forkOf("grows", 4, lines(0, 4)));
  assert.equal(head.bytes, Buffer.byteLength(lines(4, 10)));
});

test("a fork of bytes is cut at the byte", async () => {
  await server.done(["append", "b", "--lines", "--create"], "one two\n");
  await server.done(["fork", "b", "b-fork", "--skip", "4"]);
  await server.done(["append", "b-fork", "--lines"], "three\n");
  const { head, whole } = await surveyed("b-fork", { name: "b", whole: 8 });
  // What both go on with alike counts as the source's.
  assert.deepEqual([head.fork, head.bytes, whole], [forkOf("b", 5, "one t"), 5, 10]);
});

test("a stream that has nothing in common is no fork in the archive", async () => {
  await server.done(["append", "x", "--lines", "--create"], "x\n");
  await server.done(["append", "y", "--lines", "--create"], "y\n");
  const { head } = await surveyed("y", { name: "x", whole: 2 });
  assert.deepEqual([head.fork, head.bytes], [null, 2]);
});

test("a fork whose source is gone is exported whole", async () => {
  await server.done(["append", "going", "--lines", "--create"], "both\n");
  await server.done(["fork", "going", "stays"]);
  await server.done(["rm", "going", "--yes"]);
  const { head } = await surveyed("stays", { name: "going", whole: 5 });
  assert.deepEqual([head.fork, head.bytes], [null, 5]);
});

for (const [type, data] of [
  ["application/json", `"${"x".repeat(99)}"\n`.repeat(30_000)],
  ["text/plain", `${"line of text".repeat(9)}\n`.repeat(30_000)],
  ["application/octet-stream", "€".repeat(1_000_000)],
] as const)
  test(`an answer of 3 MB of ${type} is several pieces, which a server of smaller appends takes`, async (t) => {
    const generous = new VerbServer(t, { chunkBytes: 16 * 1024 * 1024 });
    await generous.done(["append", "long", "--create", "--type", type, "--piece", "8MiB"], data);
    const { bytes } = await generous.run(["export", "long"]);
    const head: { readonly pieces: readonly unknown[] } = JSON.parse(bytes.toString("utf8", 512, bytes.indexOf(0x0a)));
    assert.equal(head.pieces.length, Math.ceil(Buffer.byteLength(data) / PIECE_BYTES));
    const small = new VerbServer(t, { maxAppendBytes: PIECE_BYTES + 2 });
    assert.equal((await small.run(["import"], { stdin: bytes })).stdout, "imported  long\n");
    assert.equal(await small.done(["cat", "long"]), data);
  });
