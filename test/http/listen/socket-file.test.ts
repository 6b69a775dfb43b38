import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, linkSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { removeStaleSocket, withMode } from "../../../src/http/listen/socket-file.js";
import { tempDir } from "../../helpers/temp-dir.js";

test("a socket with a server behind it stays, and so does what is no socket", async (context) => {
  const path = join(tempDir(), "a.sock");
  const server = createServer().listen(path);
  await once(server, "listening");
  context.after(() => server.close());
  await removeStaleSocket(path);
  assert.ok(existsSync(path));
  const file = join(tempDir(), "a.txt");
  writeFileSync(file, "kept");
  await removeStaleSocket(file);
  assert.ok(existsSync(file));
  await removeStaleSocket(join(tempDir(), "nothing"));
});

test("a socket that nobody answers at is removed", async () => {
  const [path, kept] = [join(tempDir(), "a.sock"), join(tempDir(), "b.sock")];
  const server = createServer().listen(path);
  await once(server, "listening");
  // The end of the server removes only the name that it knows.
  linkSync(path, kept);
  await new Promise((resolve) => server.close(resolve));
  assert.ok(existsSync(kept));
  await removeStaleSocket(kept);
  assert.ok(!existsSync(kept));
});

test("a socket has its permissions from the beginning, and the process its own mask again", async (context) => {
  const path = join(tempDir(), "a.sock");
  const before = process.umask(0o077);
  context.after(() => void process.umask(before));
  const server = createServer();
  context.after(() => server.close());
  withMode(path, 0o660, () => void server.listen(path));
  assert.equal(statSync(path).mode & 0o777, 0o660);
  assert.equal(process.umask(), 0o077);
  assert.throws(() => withMode(path, 0o600, () => assert.fail("no socket")));
  assert.equal(process.umask(), 0o077);
  rmSync(path, { force: true });
});
