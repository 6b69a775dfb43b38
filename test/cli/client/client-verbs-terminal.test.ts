import assert from "node:assert/strict";
import type http from "node:http";
import test, { after, describe } from "node:test";
import { runClient, VerbServer } from "../../helpers/client-verb.js";
import { serverAt } from "../../helpers/server-at.js";

/** Whatever breaks a line, moves a cursor or can't be seen, but for the end of a line. */
const ACTS = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const TYPE = "text/plain;\u009b2J\u009d0;title\u009c";

describe("a hostile server", () => {
  const listed = {
    name: "a\u202etxt.exe\u2028",
    contentType: "text/plain\u2066",
    nextOffset: "1_1",
    lastAppendAt: "\u202e",
    forkedFrom: "b\u2029",
  };
  /** It has a list only below /listed/, and its offsets are none below /garbled/. */
  const listener: http.RequestListener = ({ url = "" }, res) => {
    if (url.includes("__ds/streams") && url.startsWith("/listed/")) return void res.end(JSON.stringify({ streams: [listed] }));
    if (url.includes("__ds/streams")) return void res.writeHead(404).end();
    const offset = url.startsWith("/garbled/") ? "\u009b32m_X" : "1_1";
    const headers = { "Content-Type": TYPE, "Stream-Next-Offset": offset, "Stream-Up-To-Date": "true", "Stream-Expires-At": "\u009b1m" };
    res.writeHead(200, headers).end("hello");
  };
  const server = serverAt({ after }, listener);

  for (const line of ["info a", "info a --json", "create a --json", "tail a --json", "cat a --json", "close a --json"])
    for (const isTerminal of [true, false])
      test(`says nothing of its own to ${isTerminal ? "the terminal" : "the pipe"} of ${line}`, async () => {
        const { stdout, stderr } = await runClient(line.split(" "), {
          url: await server,
          stdin: "1\n",
          isTerminal,
          isStdoutTerminal: isTerminal,
        });
        assert.notEqual(stdout, "", stderr);
        assert.doesNotMatch(stdout + stderr, ACTS);
      });

  test("says its content type, to the byte, in JSON", async () => {
    const { stdout } = await runClient(["info", "a", "--json"], { url: await server });
    assert.equal(JSON.parse(stdout).contentType, TYPE);
  });

  for (const line of ["info a", "create a --json", "tail a --json", "append a --create", "close a"])
    test(`with offsets that can be none ends ${line} with 69`, async () => {
      const { status, stdout, stderr } = await runClient(line.split(" "), { url: `${await server}/garbled/`, stdin: "x" });
      assert.deepEqual([status, stdout], [69, ""]);
      assert.match(stderr, /is no server of streams: its offset has characters that none has; see --server/);
      assert.doesNotMatch(stderr, ACTS);
    });

  for (const line of ["ls", "ls -l", "ls --json", `info ${listed.name}`])
    test(`has no list that acts on a terminal by ${JSON.stringify(line)}`, async () => {
      const args = line.startsWith("info") ? ["info", listed.name] : line.split(" ");
      const { status, stdout } = await runClient(args, { url: `${await server}/listed/`, isStdoutTerminal: true });
      assert.equal(status, 0);
      assert.match(stdout, /a\\u202etxt\.exe\\u2028/);
      assert.doesNotMatch(stdout, ACTS);
    });
});

describe("a writer and a name that are not trusted", () => {
  const server = new VerbServer({ after });
  const name = "safe\u202etxt.exe\u2066";

  test("a name is shown on a terminal, and a pipe gets it as it is", async () => {
    await server.done(["create", name]);
    await server.done(["fork", name, "fork"]);
    for (const args of [["ls"], ["ls", "-l"], ["info", name], ["info", "fork"]]) {
      const shown = await server.run(args, { isStdoutTerminal: true });
      assert.match(shown.stdout, /safe\\u202etxt\.exe\\u2066/);
      assert.doesNotMatch(shown.stdout, ACTS);
      assert.ok((await server.done(args)).includes(name));
    }
    assert.doesNotMatch(await server.done(["ls", "--json"]), ACTS);
    assert.equal(JSON.parse(await server.done(["info", name, "--json"])).name, name);
  });

  test("a message of JSON is shown with --json and on a terminal, and a pipe gets it as it is", async () => {
    const message = '{"a": "\u009b31m\u202e"}';
    await server.done(["append", "json", "--create", "--json"], `${message}\n`);
    for (const verb of ["cat", "tail"]) {
      assert.equal(await server.done([verb, "json"]), `${message}\n`);
      assert.equal((await server.run([verb, "json"], { isStdoutTerminal: true })).stdout, '{"a": "\\u009b31m\\u202e"}\n');
      assert.match(await server.done([verb, "json", "--json"]), /"data":\{"a": "\\u009b31m\\u202e"\}\}\n$/);
    }
  });

  test("text is shown with --json, and printed as it is without", async () => {
    await server.done(["append", "text", "--create", "--lines"], "\u001b[31m\u009b0m\n");
    assert.equal((await server.run(["cat", "text"], { isStdoutTerminal: true })).stdout, "\u001b[31m\u009b0m\n");
    assert.match(await server.done(["cat", "text", "--json"]), /"data":"\\u001b\[31m\\u009b0m\\n"\}\n$/);
  });
});
