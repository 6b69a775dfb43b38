import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { defaultSettings } from "../../src/options.js";
import { createServer } from "../../src/server.js";
import { namedFilesIn } from "../../src/server/named-files.js";
import { tempDir } from "../helpers/temp-dir.js";

const LOG = { debug() {}, info() {}, warn() {}, error() {} };

test("files in the data directory that the options name are told from others", () => {
  const settings = { ...defaultSettings(), auth: "/data/auth.json", listen: "127.0.0.1:80, unix:/data/http.sock", tlsKey: "/etc/key.pem" };
  assert.deepEqual(namedFilesIn("/data/", settings).sort(), ["auth.json", "http.sock"]);
  assert.deepEqual(namedFilesIn("/other", settings), []);
});

test("a new directory may have the auth file in it that the server is told to take, and nothing else", async () => {
  const dir = join(tempDir(), "data");
  mkdirSync(dir);
  const auth = join(dir, "auth.json");
  writeFileSync(auth, "{}", { mode: 0o600 });
  await assert.rejects(createServer({ dir, port: 0, log: LOG }), /as it has auth.json in it/);
  await (await createServer({ dir, port: 0, log: LOG, auth })).close();
});
