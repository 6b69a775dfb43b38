import assert from "node:assert/strict";
import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import test, { after, describe } from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const server = new VerbServer({ after });

describe("streamdir append", () => {
  test("stores standard input to the byte, in the stream that it makes", async () => {
    const input = Buffer.from(Array.from({ length: 5000 }, (_, at) => at % 256));
    const { status, stdout } = await server.run(["append", "bytes", "--create", "--piece", "1KiB"], { stdin: input });
    assert.deepEqual([status, stdout], [0, ""]);
    assert.deepEqual((await server.run(["cat", "bytes"])).bytes, input);
    assert.match(await server.done(["info", "bytes"]), /^content type {4}application\/octet-stream$/m);
  });

  test("with --lines ends each append at the end of a line, and says how much is stored", async () => {
    const made = await server.done(
      ["append", "logs/app", "--lines", "--create", "--piece", "8", "--json"],
      "one\ntwo\nthree and more\nfour",
    );
    const { nextOffset, ...facts } = JSON.parse(made);
    assert.deepEqual(facts, { name: "logs/app", bytes: 27, lines: 4, appends: 3, closed: false });
    assert.match(nextOffset, /^\d{16}_\d{16}$/);
    assert.equal(await server.done(["cat", "logs/app"]), "one\ntwo\nthree and more\nfour");
  });

  test("with --json takes one JSON value a line, to the digit", async () => {
    const values = ['{"a":1.0}', "[1,[2]]", "[]", "12345678901234567890", '"x"', "null"];
    await server.done(["append", "json", "--json", "--create"], `${values.join("\n")}\n\n  \n`);
    assert.equal(await server.done(["cat", "json"]), `${values.join("\n")}\n`);
  });

  test("takes JSON values without being told, where the stream holds them", async () => {
    await server.done(["create", "told", "--type", "application/json"]);
    await server.done(["append", "told"], "1\n2");
    assert.equal(await server.done(["cat", "told"]), "1\n2\n");
  });

  test("closes the stream at the end of the input", async () => {
    await server.done(["append", "closed", "--lines", "--create", "--close"], "last words\n");
    assert.match(await server.done(["info", "closed"]), /^state {11}closed$/m);
  });

  test("makes a stream once: one with a lifetime of its own is appended to", async () => {
    await server.done(["create", "lives", "--type", "text/plain", "--ttl", "1h"]);
    await server.done(["append", "lives", "--create", "--lines"], "a\n");
    assert.equal(await server.done(["cat", "lives"]), "a\n");
  });

  test("makes a stream with a lifetime, and leaves that of one that is there", async () => {
    await server.done(["append", "short", "--create", "--lines", "--ttl", "1h"], "a\n");
    assert.match(await server.done(["info", "short", "--json"]), /"ttlSeconds":3600/);
    await server.done(["append", "short", "--create", "--lines", "--ttl", "1h"], "b\n");
    const other = await server.run(["append", "short", "--create", "--lines", "--ttl", "2h"], { stdin: "c\n" });
    assert.deepEqual([other.status, other.stderr], [0, 'streamdir: stream "short" is there already, and keeps its lifetime\n']);
    assert.match(await server.done(["info", "short", "--json"]), /"ttlSeconds":3600/);
    await server.done(["append", "until", "--create", "--expires-at", "2999-01-31T12:00:00Z"], "a\n");
    assert.match(await server.done(["info", "until", "--json"]), /"expiresAt":"2999-01-31T12:00:00/);
  });

  for (const [title, args, line] of [
    [
      "a lifetime without --create",
      ["--ttl", "1h"],
      /^streamdir: --ttl and --expires-at are of a stream that is made: give --create, too\n$/,
    ],
    ["two lifetimes", ["--create", "--ttl", "1h", "--expires-at", "2999-01-31T12:00:00Z"], /exclude each other/],
    ["a lifetime that is none", ["--create", "--ttl", "0.5s"], /--ttl must be 1s or more/],
  ] as const)
    test(`ends with 64 for ${title}, and makes no stream`, async () => {
      const { status, stderr } = await server.run(["append", "unmade", ...args], { stdin: "a" });
      assert.equal(status, 64);
      assert.match(stderr, line);
      assert.equal((await server.run(["cat", "unmade"])).status, 66);
    });

  test("with --lines says that browsers get base64 of a stream that is there for bytes", async () => {
    await server.done(["create", "binary"]);
    const { status, stderr } = await server.run(["append", "binary", "--lines", "--create"], { stdin: "a\n" });
    assert.equal(status, 0);
    assert.equal(
      stderr,
      'streamdir: stream "binary" takes application/octet-stream: browsers get live lines as base64, which text/plain avoids\n',
    );
    // Who names the type knows it.
    await server.done(["append", "binary", "--lines", "--type", "application/octet-stream"], "b\n");
  });

  test("takes no directory for an empty input, and makes no stream then", async () => {
    const folder = await open(tempDir());
    const stdin = Object.assign(Readable.from([]), { fd: folder.fd });
    const ended = await server.run(["append", "of-folder", "--create"], { stdin });
    await folder.close();
    assert.deepEqual([ended.status, ended.stderr], [74, "streamdir: the input can't be read: it is a directory\n"]);
    assert.equal((await server.run(["cat", "of-folder"])).status, 66);
  });

  test("stores nothing for an empty input", async () => {
    await server.done(["append", "empty", "--lines", "--create"]);
    assert.equal(await server.done(["cat", "empty"]), "");
  });

  for (const [title, name, args, stdin, status, line] of [
    [
      "a line that is no JSON",
      "bad",
      ["--json", "--create"],
      "1\n2\n{\n",
      65,
      /^streamdir: line 3 of the input: it is not valid JSON: [^.]* at column \d+; /,
    ],
    ["two values on a line", "two", ["--json", "--create"], "1,2\n", 65, /^streamdir: line 1 of the input: /],
    ["a stream that is not there", "absent", [], "x", 66, /The stream does not exist \(stream-not-found\)$/m],
    ["a closed stream", "over", [], "x", 65, /\(stream-closed\); 0 bytes of the input are stored$/m],
    ["a mark that is none", "a", ["--resume", "x:1"], "x", 64, /--resume is not a mark/],
    ["a name that is none", "a//b", [], "x", 64, /empty, '\.' or '\.\.' segment/],
    ["a name that ends with a slash", "a/", [], "x", 64, /segment\. Leave out the \/ at its end\.$/m],
    ["a name that begins with one", "/a", [], "x", 64, /segment\. Leave out the \/ at its beginning\.$/m],
    ["JSON for bytes", "logs/app", ["--json"], "1", 65, /takes text\/plain, not JSON: see --lines$/m],
    ["another type", "logs/app", ["--type", "application/json"], "1", 65, /takes text\/plain, not application\/json$/m],
    ["another type of what is to be made", "logs/app", ["--create", "--type", "a/b"], "1", 65, /takes text\/plain, not a\/b$/m],
  ] as const)
    test(`ends with ${status} for ${title}`, async () => {
      await server.run(["append", "logs/app", "--lines", "--create"]);
      await server.done(["create", "over", "--closed"]);
      const ended = await server.run(["append", name, ...args], { stdin });
      assert.deepEqual([ended.status, ended.stdout], [status, ""]);
      assert.match(ended.stderr, line);
    });

  test("goes on after a mistake in the input, once it is put right", async () => {
    const wrong = await server.run(["append", "right", "--json", "--create", "--piece", "4"], { stdin: "1\n2\noops\n4\n" });
    const mark = /--resume (\S+)/.exec(wrong.stderr)?.[1] ?? "";
    assert.match(wrong.stderr, /; 4 bytes of the input are stored: once that is put right, go on with the same input and --resume /);
    await server.done(["append", "right", "--resume", mark], "1\n2\n3\n4\n");
    assert.equal(await server.done(["cat", "right"]), "1\n2\n3\n4\n");
  });

  test("sends an append that may be stored as it was, and then the rest", async () => {
    // The first run's append is stored, and its answer lost: seq 0 with 6 bytes.
    await server.done(["append", "again", "--lines", "--create", "--resume", "p:0:0:0:6"], "a\nb\nc\n");
    await server.done(["append", "again", "--lines", "--resume", "p:0:0:0:6"], "a\nb\nc\nd\n");
    assert.equal(await server.done(["cat", "again"]), "a\nb\nc\nd\n");
  });

  for (const [title, stdin] of [
    ["nothing", ""],
    ["only what is left", "x".repeat(200)],
    ["a part of what was sent last", "x".repeat(1100)],
  ] as const)
    test(`takes ${title} for another input than that of a mark, and closes no stream for it`, async () => {
      await server.done(["create", title]);
      const { status, stdout, stderr } = await server.run(["append", title, "--resume", "p:0:5:1000:200", "--close"], { stdin });
      assert.deepEqual([status, stdout], [65, ""]);
      assert.match(stderr, /^streamdir: this is not the same input: .* and --resume p:0:5:1000:200\n$/);
      assert.match(await server.done(["info", title]), /^state {11}open$/m);
      assert.equal(await server.done(["cat", title]), "");
    });

  test("ends with 130 at SIGINT, and says where to go on", async () => {
    const { status, stderr } = await server.interruptedAppend("cut");
    assert.equal(status, 130);
    assert.match(stderr, /^streamdir: stopped; 5 bytes of the input are stored: .* --resume \w+:0:1:5:0\n$/);
  });

  test("shows a terminal how much is stored, on standard error", async () => {
    const { stdout, stderr } = await server.run(["append", "shown", "--lines", "--create"], { stdin: "a\n", isTerminal: true });
    assert.equal(stdout, "");
    assert.match(stderr, /streamdir: 2 bytes in 1 appends are stored\n$/);
  });
});
