import assert from "node:assert/strict";
import test, { after } from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after });

test("the data of a JSON stream is a message a line, of another its bytes", async () => {
  await server.done(["append", "json", "--json", "--create"], '[1, 2]\n"a"\n');
  await server.done(["append", "text", "--lines", "--create"], "no end");
  const dataOf = async (name: string): Promise<string> => {
    const { bytes } = await server.run(["export", name]);
    const { bytes: length } = JSON.parse(bytes.toString("utf8", 512, bytes.indexOf(0x0a)));
    return bytes.toString("utf8", 3 * 512, 3 * 512 + length);
  };
  assert.equal(await dataOf("json"), '[1, 2]\n"a"\n');
  assert.equal(await dataOf("text"), "no end");
});
