import assert from "node:assert/strict";
import test, { after, before, describe } from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";

const NAMES = ["chat/1", "chat/1-b", "chat/2/x", "jobs/42", "ä/ü", "with a space"];
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/;

describe("streamdir ls", () => {
  const server = new VerbServer({ after });

  before(async () => {
    await server.done(["append", "chat/1", "--json", "--create", "--close"], '"eleven"\n');
    await server.done(["fork", "chat/1", "chat/1-b"]);
    for (const name of ["chat/2/x", "ä/ü", "with a space"]) await server.done(["create", name]);
    await server.done(["append", "jobs/42", "--lines", "--create"], `${"x".repeat(99_999)}\n`);
  });

  test("says where it has found no list", async () => {
    const { status, stderr } = await server.run(["ls", "--prefix", "/wrong/"]);
    assert.equal(status, 69);
    assert.match(stderr, /^streamdir: there is no list of streams at http:\/\/127\.0\.0\.1:\d+ below \/wrong\/\n$/);
  });

  for (const [args, names] of [
    [[], [...NAMES].sort()],
    [["chat/*"], ["chat/1", "chat/1-b"]],
    [["chat/**"], ["chat/1", "chat/1-b", "chat/2/x"]],
    [["chat/"], ["chat/1", "chat/1-b", "chat/2/x"]],
    [["jobs/42"], ["jobs/42"]],
    [["ä/*"], ["ä/ü"]],
    [["with a space"], ["with a space"]],
    [["none"], []],
  ] as const)
    test(`${args.join(" ")} prints names`, async () => {
      assert.equal(await server.done(["ls", ...args]), names.map((name) => `${name}\n`).join(""));
    });

  test("-l shows them in columns", async () => {
    const text = await server.done(["ls", "-l", "chat/"]);
    assert.equal(
      text.replace(TIME, "2026-01-31T12:00:00Z"),
      [
        "c-  10  2026-01-31T12:00:00Z  application/json          chat/1",
        "-f  10  -                     application/json          chat/1-b < chat/1",
        "--   0  -                     application/octet-stream  chat/2/x",
        "",
      ].join("\n"),
    );
  });

  test("--json prints all that the list has, a stream a line", async () => {
    const lines = (await server.done(["ls", "--json", "chat/1*"])).trimEnd().split("\n");
    const [first, fork] = lines.map((line) => JSON.parse(line));
    const { nextOffset, earliestOffset, createdAt, lastAppendAt, ...facts } = first;
    assert.deepEqual(facts, {
      name: "chat/1",
      contentType: "application/json",
      closed: true,
      bytes: 10,
      ttlSeconds: null,
      expiresAt: null,
      isFork: false,
      forkedFrom: null,
      liveReaders: 0,
      producers: 1,
      may: ["read", "append", "close", "delete"],
    });
    assert.ok(earliestOffset < nextOffset && createdAt <= lastAppendAt);
    assert.deepEqual([fork.isFork, fork.forkedFrom], [true, "chat/1"]);
  });

  test("ends with 65 for a pattern that the server refuses", async () => {
    const { status, stderr } = await server.run(["ls", ".."]);
    assert.equal(status, 65);
    assert.match(stderr, /must have no \. or \.\. segment/);
  });

  test("lists more streams than a page has", async (t) => {
    const many = new VerbServer(t);
    const url = await many.url();
    const names = Array.from({ length: 2100 }, (_, at) => `s/${String(at).padStart(4, "0")}`);
    for (let at = 0; at < names.length; at += 100)
      await Promise.all(names.slice(at, at + 100).map((name) => fetch(`${url}${name}`, { method: "PUT" }).then((answer) => answer.text())));
    assert.equal(await many.done(["ls"]), names.map((name) => `${name}\n`).join(""));
  });
});
