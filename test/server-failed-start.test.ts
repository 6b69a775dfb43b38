import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { test, type TestContext } from "node:test";
import { Authority } from "../src/auth/authority.js";
import { createHandler, createServer } from "../src/server.js";
import { AuthFile } from "./helpers/auth-file.js";
import { ManualClock } from "./helpers/manual-clock.js";
import { tempDir } from "./helpers/temp-dir.js";

/** The files of the page can't be read, once. */
function spoilPage(context: TestContext): void {
  const { readdirSync } = fs;
  const spoilt = context.mock.method(fs, "readdirSync", (path: string, options: { withFileTypes: true }) => {
    if (!String(path).endsWith("/page/")) return readdirSync(path, options);
    spoilt.mock.restore();
    syncBuiltinESMExports();
    throw Object.assign(new Error("too many open files"), { code: "EMFILE" });
  });
  syncBuiltinESMExports();
  context.after(() => {
    spoilt.mock.restore();
    syncBuiltinESMExports();
  });
}

class Output extends EventEmitter {
  write(_: Buffer, written: () => void): void {
    written();
  }
}

for (const [what, start] of Object.entries({ createServer, createHandler }))
  test(`${what} ends all that it began when it fails, and can be called again`, async (context) => {
    const auth = new AuthFile();
    auth.write();
    const clock = new ManualClock();
    const accessOutput = new Output();
    const closing = context.mock.method(Authority.prototype, "close");
    const options = { dir: tempDir(), port: 0, auth: auth.path, accessLog: true, logLevel: "silent", clock, accessOutput } as const;
    spoilPage(context);
    await assert.rejects(start(options), { code: "EMFILE" });
    assert.deepEqual([clock.pendingCount, accessOutput.listenerCount("error"), closing.mock.callCount()], [0, 0, 1]);
    await (await start(options)).close();
  });
