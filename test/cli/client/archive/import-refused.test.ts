import assert from "node:assert/strict";
import test, { after, describe } from "node:test";
import { crc32 } from "node:zlib";
import { archiveOf } from "../../../helpers/archive-of.js";
import { VerbServer } from "../../../helpers/client-verb.js";

const TOO_LARGE =
  "The body is larger than the server accepts: At most 8 bytes are accepted. (body-too-large); see --max-append-bytes of the server";
const server = new VerbServer({ after }, { maxAppendBytes: 8 });

const contentType = "text/plain";
const archived = (name: string, lines: readonly string[]): Buffer =>
  archiveOf(lines.join(""), { name, contentType, pieces: lines.map((line) => [line.length, crc32(line)] as const) });

describe("an import whose data is refused for good", () => {
  test("says that the stream is left which it has made, and that it was there before", async () => {
    for (const left of ["the stream that was made for it is left, without data", "the stream was there before, and is as it was"]) {
      const { status, stdout, stderr } = await server.run(["import"], { stdin: archived("large", ["123456789", "1"]) });
      assert.deepEqual([status, stdout], [65, `refused   large: stream "large": ${TOO_LARGE}; ${left}\n`]);
      assert.equal(stderr, "streamdir: not imported: 1 of 1 streams\n");
      assert.equal(await server.done(["cat", "large"]), "");
    }
  });

  test("leaves the data before it, and says how much that is", async () => {
    const { stdout } = await server.run(["import"], { stdin: archived("half", ["1\n", "2\n", "123456789"]) });
    assert.equal(stdout, `refused   half: stream "half": ${TOO_LARGE}; its first 4 bytes are stored\n`);
    assert.equal(await server.done(["cat", "half"]), "1\n2\n");
  });
});
