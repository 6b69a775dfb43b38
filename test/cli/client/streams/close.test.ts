import assert from "node:assert/strict";
import test, { after } from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after });

test("close closes a stream, as often as it is asked to", async () => {
  await server.done(["create", "a", "--type", "text/plain"]);
  for (let round = 0; round < 2; round += 1) {
    const { nextOffset, ...facts } = JSON.parse(await server.done(["close", "a", "--json"]));
    assert.deepEqual(facts, { name: "a", closed: true });
    assert.match(nextOffset, /^\d{16}_\d{16}$/);
  }
  assert.equal((await server.run(["append", "a"], { stdin: "x" })).status, 65);
  assert.equal((await server.run(["close", "none"])).status, 66);
});
