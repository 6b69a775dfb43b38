// Servers that take less in one append than a piece has.

import assert from "node:assert/strict";
import test, { after, describe } from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";

const INPUT = Buffer.from(Array.from({ length: 80_000 }, (_, at) => `${at} ${"x".repeat(56)}\n`).join(""));

for (const maxAppendBytes of [983_040, 100_000]) {
  const server = new VerbServer({ after }, { maxAppendBytes });

  describe(`streamdir append to a server that takes ${maxAppendBytes} bytes`, () => {
    for (const flags of [[], ["--lines"]])
      test(`stores all of a long input, ${flags.join("") || "as bytes"}`, async () => {
        const name = `s${flags.length}`;
        const ended = await server.run(["append", name, "--create", ...flags], { stdin: INPUT });
        assert.equal(ended.status, 0, ended.stderr);
        assert.ok((await server.run(["cat", name])).bytes.equals(INPUT));
      });

    test("stores all JSON values of a long input", async () => {
      const values = Buffer.from(Array.from({ length: 80_000 }, (_, at) => `{"at":${at},"x":"${"x".repeat(44)}"}\n`).join(""));
      const ended = await server.run(["append", "json", "--create", "--json"], { stdin: values });
      assert.equal(ended.status, 0, ended.stderr);
      assert.ok((await server.run(["cat", "json"])).bytes.equals(values));
    });
  });
}

test("a line longer than the server takes ends the run, and the lines before it are stored", async () => {
  const server = new VerbServer({ after }, { maxAppendBytes: 8 });
  const ended = await server.run(["append", "s", "--create", "--lines"], { stdin: "one\ntwo\nlonger than that\nfour\n" });
  assert.equal(ended.status, 65);
  assert.match(ended.stderr, /body-too-large\); 8 bytes of the input are stored/);
  assert.equal(await server.done(["cat", "s"]), "one\ntwo\n");
});
