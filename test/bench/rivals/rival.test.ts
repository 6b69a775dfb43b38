import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { delimiter, dirname } from "node:path";
import { test } from "node:test";
import { RIVALS } from "./all.js";
import { freePort } from "../../helpers/free-ports.js";
import { hasProgram } from "./rival.js";

test("a program is there when a folder of the path has it", () => {
  const path = ["/nowhere", dirname(process.execPath)].join(delimiter);
  assert.deepEqual([hasProgram("node", path), hasProgram("node", "/nowhere"), hasProgram("no-such-program", path)], [true, false, false]);
});

test("a free port can be listened on", async () => {
  const server = createServer().listen(await freePort(), "127.0.0.1");
  await once(server, "listening");
  server.close();
});

test("the rivals have names of their own, and say whether they are installed", () => {
  assert.equal(new Set(RIVALS.map(({ name }) => name)).size, RIVALS.length);
  for (const rival of RIVALS) assert.equal(typeof rival.isInstalled(), "boolean");
});
