import assert from "node:assert/strict";
import test, { after } from "node:test";
import { ARCHIVE_END } from "../../../../src/cli/client/archive/tar.js";
import { archiveOf as archive } from "../../../helpers/archive-of.js";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after });

for (const [title, before, bytes, status, line] of [
  ["into an empty stream", [["create", "empty", "--type", "application/json"]], archive("1\n", { name: "empty" }), 0, "imported  empty\n"],
  [
    "a fork without its source",
    [],
    archive("1\n", { name: "fork", fork: { from: "none", at: 1 } }),
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
    const ended = await server.run(["import"], { stdin: bytes });
    assert.deepEqual([ended.status, ended.stdout], [status, line]);
  });

test("a stream is a fork again, with the same messages", async () => {
  await server.done(["append", "source", "--json", "--create"], "1\n2\n3\n");
  const bytes = archive("4\n", { name: "branch", fork: { from: "source", at: 2 } });
  for (const what of ["imported  ", "there     "]) assert.equal((await server.run(["import"], { stdin: bytes })).stdout, `${what}branch\n`);
  assert.equal(await server.done(["cat", "branch"]), "1\n2\n4\n");
  const dry = await server.run(["import", "--dry-run"], { stdin: bytes });
  assert.equal(dry.stdout, "there     branch\n");
});

test("a dry run knows the sources that the import would have made", async () => {
  const source = archive("1\n", { name: "will-be" });
  const fork = archive("2\n", { name: "will-be-fork", fork: { from: "will-be", at: 1 } });
  const both = Buffer.concat([source.subarray(0, -ARCHIVE_END.length), fork]);
  const { status, stdout } = await server.run(["import", "--dry-run"], { stdin: both });
  assert.deepEqual([status, stdout], [0, "imported  will-be\nimported  will-be-fork\n"]);
  const alone = await server.run(["import", "--dry-run"], { stdin: fork });
  assert.deepEqual([alone.status, alone.stdout], [65, 'refused   will-be-fork: its source "will-be" is not there\n']);
});
