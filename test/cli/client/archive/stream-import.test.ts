import assert from "node:assert/strict";
import test, { after, describe } from "node:test";
import { crc32 } from "node:zlib";
import { ARCHIVE_END } from "../../../../src/cli/client/archive/tar.js";
import { archiveOf as archive, forkOf } from "../../../helpers/archive-of.js";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after });

for (const [title, before, bytes, status, line] of [
  ["into an empty stream", [["create", "empty", "--type", "application/json"]], archive("1\n", { name: "empty" }), 0, "imported  empty\n"],
  [
    "of text into an empty stream",
    [["create", "empty-text", "--type", "text/plain"]],
    archive("1\n", { name: "empty-text", contentType: "text/plain" }),
    0,
    "imported  empty-text\n",
  ],
  [
    "a fork without its source",
    [],
    archive("1\n", { name: "fork", fork: forkOf("none", 1, "1\n") }),
    65,
    'refused   fork: its source "none" is not there\n',
  ],
  [
    "an empty stream, where one of another type is",
    [["create", "text", "--type", "text/plain"]],
    archive("", { name: "text" }),
    65,
    'refused   text: stream "text" is of text/plain, and not of application/json\n',
  ],
  [
    "a closed stream that is there and open",
    [["create", "open", "--type", "application/json"]],
    archive("1\n", { name: "open", closed: true }),
    0,
    "imported  open\n",
  ],
] as const)
  test(`an import ${title} ends with ${status}`, async () => {
    for (const args of before) await server.done(args);
    // A dry run says beforehand what the import will say.
    for (const args of [["--dry-run"], []]) {
      const ended = await server.run(["import", ...args], { stdin: bytes });
      assert.deepEqual([ended.status, ended.stdout], [status, line], args.join());
    }
  });

test("a stream is a fork again, with the same messages", async () => {
  await server.done(["append", "source", "--json", "--create"], "1\n2\n3\n");
  const bytes = archive("4\n", { name: "branch", fork: forkOf("source", 2, "1\n2\n") });
  for (const what of ["imported  ", "there     "]) assert.equal((await server.run(["import"], { stdin: bytes })).stdout, `${what}branch\n`);
  assert.equal(await server.done(["cat", "branch"]), "1\n2\n4\n");
  const dry = await server.run(["import", "--dry-run"], { stdin: bytes });
  assert.equal(dry.stdout, "there     branch\n");
});

test("a fork that begins with more than a server looks through is imported, also where an import ended with its creation", async () => {
  const inherited = `${JSON.stringify("x".repeat(1_000_000))}\n`.repeat(70);
  await server.done(["append", "long", "--json", "--create"], `${inherited}"last"\n`);
  const bytes = archive("4\n", { name: "of-long", fork: forkOf("long", 70, inherited) });
  const cut = await server.run(["import"], { stdin: bytes.subarray(0, -ARCHIVE_END.length - 512) });
  assert.deepEqual([cut.status, cut.stderr], [65, "streamdir: the archive is cut off\n"]);
  for (const what of ["imported  ", "there     "]) {
    const { status, stdout } = await server.run(["import"], { stdin: bytes });
    assert.deepEqual([status, stdout], [0, `${what}of-long\n`]);
  }
  assert.equal(await server.done(["cat", "of-long"]), `${inherited}4\n`);
  assert.match(await server.done(["info", "of-long"]), /^forked from {5}long$/m);
});

for (const [title, args, data, contentType, fork] of [
  ["bytes", ["--lines"], "of another chat\n", "text/plain", forkOf("bytes", 4, "this")],
  ["fewer bytes", ["--lines"], "th\n", "text/plain", forkOf("fewer bytes", 4, "this")],
  ["messages", ["--json"], "1\n7\n", "application/json", forkOf("messages", 2, "1\n2\n")],
  ["fewer messages", ["--json"], "1\n", "application/json", forkOf("fewer messages", 2, "1\n2\n")],
] as const)
  test(`a stream is no fork of one of its source's name that has other ${title}`, async () => {
    await server.done(["append", title, "--create", ...args], data);
    const bytes = archive("4\n", { name: `of ${title}`, contentType, fork });
    const refused = `refused   of ${title}: its source "${title}" has another beginning here\n`;
    for (const options of [["--dry-run"], []]) {
      const { status, stdout } = await server.run(["import", ...options], { stdin: bytes });
      assert.deepEqual([status, stdout], [65, refused]);
    }
    assert.equal((await server.run(["info", `of ${title}`])).status, 66);
    // One that is there is not it either, though it has the same data of its own.
    await server.done(["fork", title, `of ${title}`]);
    await server.done(["append", `of ${title}`], "4\n");
    for (const options of [["--dry-run"], []]) {
      const { status, stdout } = await server.run(["import", ...options], { stdin: bytes });
      assert.equal(status, 65, stdout);
    }
  });

test("a dry run takes a source for what the import will make of it", async () => {
  const [begun, line] = ["begun", "1\n".repeat(2)];
  const source = archive(line, { name: begun });
  const fork = archive("2\n", { name: "of begun", fork: forkOf(begun, 2, line) });
  const bytes = Buffer.concat([source.subarray(0, -ARCHIVE_END.length), fork]);
  await server.done(["create", begun, "--type", "application/json"]);
  for (const options of [["--dry-run"], []]) {
    const { status, stdout } = await server.run(["import", ...options], { stdin: bytes });
    assert.deepEqual([status, stdout], [0, "imported  begun\nimported  of begun\n"]);
  }
});

test("a stream whose time is over is not made again, and its forks are told to lack it", async () => {
  const expiresAt = "2020-01-01T00:00:00Z";
  const source = archive("1\n", { name: "over", expiresAt });
  const bytes = Buffer.concat([
    source.subarray(0, -ARCHIVE_END.length),
    archive("2\n", { name: "of over", fork: forkOf("over", 1, "1\n") }),
  ]);
  for (const options of [["--dry-run"], []]) {
    const { status, stdout } = await server.run(["import", ...options], { stdin: bytes });
    const lines = [`over: its time was over at ${expiresAt}`, 'of over: its source "over" is not there'];
    assert.deepEqual([status, stdout], [65, lines.map((line) => `refused   ${line}\n`).join("")]);
  }
});

test("a dry run knows the sources that the import would have made", async () => {
  const source = archive("1\n", { name: "will-be" });
  const fork = archive("2\n", { name: "will-be-fork", fork: forkOf("will-be", 1, "1\n") });
  const both = Buffer.concat([source.subarray(0, -ARCHIVE_END.length), fork]);
  const { status, stdout } = await server.run(["import", "--dry-run"], { stdin: both });
  assert.deepEqual([status, stdout], [0, "imported  will-be\nimported  will-be-fork\n"]);
  const alone = await server.run(["import", "--dry-run"], { stdin: fork });
  assert.deepEqual([alone.status, alone.stdout], [65, 'refused   will-be-fork: its source "will-be" is not there\n']);
});

describe("a dry run finds", () => {
  const lines = ["one\n", "two\n", "three\n"];
  const pieces = lines.map((line) => [line.length, crc32(line)] as const);
  const archived = (name: string, closed = false) => archive(lines.join(""), { name, contentType: "text/plain", pieces, closed });

  for (const [name, data, args, closed, what] of [
    ["one-piece", "one\n", [], false, "continued"],
    ["two-pieces", "one\ntwo\n", [], false, "continued"],
    ["all-but-the-closure", "one\ntwo\nthree\n", [], true, "continued"],
    ["all", "one\ntwo\nthree\n", [], false, "there"],
    ["half-a-piece", "one\nt", [], false, "refused"],
    ["another-piece", "one\nTWO\n", [], false, "refused"],
    ["more", "one\ntwo\nthree\nfour\n", [], false, "refused"],
    ["closed-too-early", "one\n", ["--close"], false, "refused"],
  ] as const)
    test(`${name}: ${what}`, async () => {
      await server.done(["append", name, "--create", "--type", "text/plain", ...args], data);
      const { status, stdout } = await server.run(["import", "--dry-run"], { stdin: archived(name, closed) });
      assert.equal(status, what === "refused" ? 65 : 0);
      assert.equal(stdout.slice(0, what.length + 1), `${what} `);
      assert.equal(await server.done(["cat", name]), data);
    });
});

test("messages as long as the server takes them are imported, arrays too", async (t) => {
  const small = new VerbServer(t, { maxAppendBytes: 100 });
  for (const [name, text] of [
    ["string", `${JSON.stringify("x".repeat(98))}\n`],
    ["array", `[${"1".repeat(96)}]\n`],
    ["spaced-array", " [1,2]\n"],
    ["two", "1\n2\n"],
  ] as const) {
    const { status, stdout, stderr } = await small.run(["import"], { stdin: archive(text, { name }) });
    assert.deepEqual([status, stdout], [0, `imported  ${name}\n`], stderr);
    assert.equal(await small.done(["cat", name]), text.trimStart());
  }
});
