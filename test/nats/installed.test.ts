import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startProgram, type TestProcess, type TestScope } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";
import { NatsCluster } from "./nats-cluster.js";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const QUIET = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"];
const CLIENT = "@nats-io/transport-node";

describe("the package, installed in a folder of its own", { timeout: 300_000 }, () => {
  const folder = tempDir();
  before(async () => {
    // As `npm run build` has left it.
    await run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { cwd: ROOT });
    const [tarball = ""] = readdirSync(folder);
    await run("npm", ["install", ...QUIET, join(folder, tarball)], { cwd: folder });
  });

  function serve(scope: TestScope, storage: string): TestProcess {
    const args = ["serve", "--port", "0", "--storage", storage];
    return startProgram(scope, join(folder, "node_modules/.bin/streamdir"), args, { cwd: folder });
  }

  test("says in one line what a cluster needs, and has a place for it", async (context) => {
    assert.deepEqual(
      readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith(".")),
      ["streamdir"],
    );
    const { status, stdout, stderr } = await serve(context, "nats://127.0.0.1:1/b").ended;
    assert.deepEqual(
      [status, stdout, stderr],
      [1, "", `streamdir: Cannot start: --storage nats:// needs the client of NATS: npm install ${CLIENT}\n`],
    );
  });

  test("connects once the client is installed beside it", async (context) => {
    await run("npm", ["install", ...QUIET, CLIENT], { cwd: folder });
    const nobody = await serve(context, "nats://127.0.0.1:1/b").ended;
    assert.equal(nobody.status, 1);
    assert.match(nobody.stderr, /^streamdir: Cannot start: no NATS server can be used at 127\.0\.0\.1:1: .*\n$/);
    const cluster = await NatsCluster.start({ size: 1 });
    context.after(() => cluster.stop());
    const served = serve(context, cluster.storageOf("b", "?replicas=1"));
    assert.match(await served.stdoutLine(/serv/), /nats:\/\/127\.0\.0\.1:\d+\/b/);
    served.kill("SIGTERM");
    assert.equal((await served.ended).status, 0);
  });
});
