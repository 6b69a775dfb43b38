import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { startStreamdir } from "../helpers/process.js";
import { Random } from "../helpers/random.js";
import { RealServer } from "../helpers/real-server.js";
import { StreamLoad, type Ledger } from "../helpers/stream-load.js";
import { tempDir } from "../helpers/temp-dir.js";

/** Sizes at which streams have several segments, and journal files rotate all the time. */
const SIZES = ["--segment-bytes", "8KiB", "--journal-bytes", "512KiB", "--journal-bypass-bytes", "8KiB", "--retention-bytes", "64KiB"];
const ROUNDS = 3;

/** A backup must be sound, and a server that is started on a copy of it must have all of what is in the ledger. */
async function assertHas(context: TestContext, dest: string, ledger: Ledger): Promise<void> {
  const { status, stdout, stderr } = await startStreamdir(context, ["verify", dest]).ended;
  assert.equal(status, 0, `verify: ${stdout}${stderr}`);
  const copy = join(tempDir(), "copy");
  cpSync(dest, copy, { recursive: true });
  const restored = new RealServer(context, SIZES, copy);
  await restored.start();
  assert.ok(ledger.size > 0);
  await ledger.assertIn(restored);
  assert.equal((await restored.stop()).status, 0);
  await restored.verify();
}

test("a backup under load has all that was acknowledged before it, and nothing half", async (context) => {
  const server = new RealServer(context, SIZES);
  await server.start();
  server.agent = new http.Agent({ keepAlive: true });
  context.after(async () => server.agent?.destroy());
  const load = new StreamLoad(server, new Random(1));
  load.start(8, 20);
  const dest = join(tempDir(), "backup");
  for (let round = 1; round <= ROUNDS; round += 1) {
    await load.more(500);
    const before = load.count;
    const ledger = load.ledger();
    const { status, stdout, stderr } = await startStreamdir(context, ["backup", server.dir, dest]).ended;
    assert.equal(status, 0, `${stdout}${stderr}`);
    assert.ok(load.count > before, "nothing was written meanwhile");
    await assertHas(context, dest, ledger);
  }
  await load.stop();
  assert.equal((await server.stop()).status, 0);
  await server.verify();
});
