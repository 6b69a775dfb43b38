// Servers that take less in one append than a piece has.

import assert from "node:assert/strict";
import test, { after, describe } from "node:test";
import { runClient, VerbServer } from "../../../helpers/client-verb.js";
import { losingProxy } from "../../../helpers/losing-proxy.js";

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

describe("an append that is too large, and whose first try had no answer", () => {
  const text = Array.from({ length: 2000 }, (_, at) => `"${at} ${"x".repeat(40)}"\n`).join("");

  for (const flags of [["--lines"], ["--json"], ["--piece", "50KiB"]])
    test(`is sent in halves, ${flags.join(" ")}`, async (t) => {
      const server = new VerbServer(t, { maxAppendBytes: 20_000 });
      let posts = 0;
      const lost = (method: string): boolean => method === "POST" && (posts += 1) === 1;
      const url = await losingProxy(t, () => server.url(), lost);
      const ended = await runClient(["append", "s", "--create", "--wait", "1m", ...flags], { url, stdin: text });
      assert.equal(ended.status, 0, ended.stderr);
      assert.equal(await server.done(["cat", "s"]), text);
    });
});

test("a line longer than the server takes ends the run, and the lines before it are stored", async () => {
  const server = new VerbServer({ after }, { maxAppendBytes: 8 });
  const ended = await server.run(["append", "s", "--create", "--lines"], { stdin: "one\ntwo\nlonger than that\nfour\n" });
  assert.equal(ended.status, 65);
  assert.match(ended.stderr, /body-too-large\); 8 bytes of the input are stored/);
  assert.equal(await server.done(["cat", "s"]), "one\ntwo\n");
});
