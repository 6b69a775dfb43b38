import assert from "node:assert/strict";
import test, { after, describe } from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after }, { chunkBytes: 1024 });

describe("streamdir cat", () => {
  test("prints all of a stream of many reads", async () => {
    const text = Array.from({ length: 2000 }, (_, at) => `line ${at}\n`).join("");
    await server.done(["append", "long", "--lines", "--create", "--piece", "512"], text);
    assert.equal(await server.done(["cat", "long"]), text);
    assert.equal(await server.done(["cat", "long", "-n", "150"]), text.split("\n").slice(0, 150).join("\n") + "\n");
  });

  test("prints JSON messages a line each, and stops after so many", async () => {
    await server.done(["append", "json", "--json", "--create"], '{"a":1}\n2\n3\n');
    assert.equal(await server.done(["cat", "json", "-n", "2"]), '{"a":1}\n2\n');
    assert.equal(await server.done(["cat", "json", "-n", "0"]), "");
  });

  test("says that it takes no pattern", async () => {
    const { status, stderr } = await server.run(["cat", "jobs/*"]);
    assert.equal(status, 66);
    assert.match(stderr, /\(stream-not-found\); cat takes one name, and no pattern\n$/);
  });

  test("goes on from an offset", async () => {
    await server.done(["append", "on", "--lines", "--create"], "1\n");
    const { nextOffset } = JSON.parse(await server.done(["append", "on", "--lines", "--json"], "2\n"));
    await server.done(["append", "on", "--lines"], "3\n");
    assert.equal(await server.done(["cat", "on", "--from", nextOffset]), "3\n");
    assert.equal(await server.done(["cat", "on", "--from", "-1"]), "1\n2\n3\n");
    assert.equal((await server.run(["cat", "on", "--from", "x"])).status, 65);
  });

  test("with --json prints text as strings, and bytes that are none in base64", async () => {
    await server.done(["append", "text", "--lines", "--create"], "grün\n");
    assert.equal(JSON.parse(await server.done(["cat", "text", "--json"])).data, "grün\n");
    await server.run(["append", "raw", "--create"], { stdin: Buffer.from([0xff, 0x00]) });
    const { offset, base64 } = JSON.parse(await server.done(["cat", "raw", "--json"]));
    assert.match(offset, /^\d{16}_\d{16}$/);
    assert.equal(base64, "/wA=");
  });

  test("with --json counts the lines of text, too", async () => {
    await server.done(["append", "counted", "--lines", "--create"], "1\n2\n3\n");
    assert.equal(await server.done(["cat", "counted", "--json", "-n", "2"]), '{"offset":null,"data":"1\\n2\\n"}\n');
  });

  test("ends with 0 when its reader has gone", async () => {
    const gone = Object.assign(new Error("EPIPE"), { code: "EPIPE" });
    assert.equal((await server.run(["cat", "long"], { onStdout: () => gone })).status, 0);
  });

  test("ends with 66 where there is no stream", async () => {
    const { status, stdout, stderr } = await server.run(["cat", "none"]);
    assert.deepEqual([status, stdout], [66, ""]);
    assert.equal(stderr, 'streamdir: stream "none": The stream does not exist (stream-not-found)\n');
  });
});
