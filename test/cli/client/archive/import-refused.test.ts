import assert from "node:assert/strict";
import { join } from "node:path";
import test, { after, describe, type TestContext } from "node:test";
import { crc32 } from "node:zlib";
import { addToken } from "../../../../src/auth/auth-file-edits.js";
import type { Operation } from "../../../../src/auth/rights/operation.js";
import { archiveOf } from "../../../helpers/archive-of.js";
import { VerbServer } from "../../../helpers/client-verb.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const TOO_LARGE = "The body is larger than the server accepts: At most 8 bytes are accepted. (body-too-large)";
const server = new VerbServer({ after }, { maxAppendBytes: 8 });

const contentType = "text/plain";
const archived = (name: string, lines: readonly string[]): Buffer =>
  archiveOf(lines.join(""), { name, contentType, pieces: lines.map((line) => [line.length, crc32(line)] as const) });

describe("an import whose data is refused for good", () => {
  test("leaves no stream that it has made", async () => {
    for (const round of ["first", "second"]) {
      const { status, stdout, stderr } = await server.run(["import"], { stdin: archived("large", ["123456789", "1"]) });
      assert.deepEqual([status, stdout], [65, `refused   large: stream "large": ${TOO_LARGE}\n`], round);
      assert.equal(stderr, "streamdir: not imported: 1 of 1 streams\n");
      assert.equal((await server.run(["info", "large"])).status, 66);
    }
  });

  test("leaves a stream that was there", async () => {
    await server.done(["create", "there", "--type", contentType]);
    const { stdout } = await server.run(["import"], { stdin: archived("there", ["123456789"]) });
    assert.equal(stdout, `refused   there: stream "there": ${TOO_LARGE}\n`);
    assert.match(await server.done(["info", "there"]), /open/);
  });

  test("leaves the data before it, and says how much that is", async () => {
    const { stdout } = await server.run(["import"], { stdin: archived("half", ["1\n", "2\n", "123456789"]) });
    assert.equal(stdout, `refused   half: stream "half": ${TOO_LARGE}; its first 4 bytes are stored\n`);
    assert.equal(await server.done(["cat", "half"]), "1\n2\n");
  });

  for (const [title, change, data] of [
    ["appended to", ["append", "taken"], "mine\n"],
    ["closed", ["close", "taken-closed"], ""],
  ] as const)
    test(`leaves a stream that others have ${title} since`, async () => {
      const [, name] = change;
      const bytes = archived(name, ["123456789"]);
      const dataAt = bytes.indexOf("123456789");
      const { stdout } = await server.run(["import"], {
        stdin: {
          async *[Symbol.asyncIterator]() {
            yield bytes.subarray(0, dataAt);
            await server.done(change, data);
            yield bytes.subarray(dataAt);
          },
        },
      });
      assert.match(stdout, /^refused {3}taken.*; others have changed the stream since, so it is left\n$/);
      assert.equal(await server.done(["cat", name]), data);
    });
});

async function importWith(t: TestContext, allow: readonly Operation[]): Promise<string> {
  const auth = join(tempDir(), "auth.json");
  const token = await addToken(auth, { id: "me", allow, streams: ["**"], lifetimeMs: null }, Date.now());
  const guarded = new VerbServer(t, { maxAppendBytes: 8, auth });
  const env = { STREAMDIR_TOKEN: token };
  return (await guarded.run(["import"], { stdin: archived("s", ["123456789"]), env })).stdout;
}

for (const [title, allow] of [
  ["delete", ["create", "append", "read"]],
  ["look at", ["create", "append", "delete"]],
] as const)
  test(`an import with a token that may not ${title} what it has made says that it is left`, async (t) => {
    const stdout = await importWith(t, allow);
    assert.match(stdout, /^refused {3}s: .* \(body-too-large\); an empty stream is left: it can't be deleted: .+\n$/);
  });
