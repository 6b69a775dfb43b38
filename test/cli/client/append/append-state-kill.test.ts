import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { startStreamdir } from "../../../helpers/process.js";
import { Random } from "../../../helpers/random.js";
import { RealServer } from "../../../helpers/real-server.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const KILLS = 4;
const LINES = 2500;
const SEED = 20261128;

test("append --state, killed with -9 and run again, stores each line once, in order", async (t) => {
  const server = new RealServer(t, []);
  await server.start();
  const random = new Random(SEED);
  const lines = Array.from({ length: LINES }, (_, at) => `line ${at} ${"x".repeat(at % 50)}\n`);
  const state = join(tempDir(), "state");
  const env = { STREAMDIR_URL: server.url };
  /** Given some of the lines it waits for more once it has appended those: it ends by no other way than being killed. */
  const run = (given = LINES) => {
    // Each run has another size, and so other pieces.
    const piece = `${random.integer(100, 400)}`;
    const started = startStreamdir(t, ["append", "log", "--lines", "--create", "--state", state, "--piece", piece], {
      hasInput: true,
      env,
    });
    const input = started.stdin ?? assert.fail("it has an input");
    input.on("error", () => {}); // it is killed while it reads
    input.write(lines.slice(0, given).join(""));
    if (given === LINES) input.end();
    return started;
  };
  await server.ask("PUT", "log", { headers: { "Content-Type": "text/plain" } });
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const before = String((await server.ask("HEAD", "log")).headers["stream-next-offset"]);
    // More than the one before had, so that there is something to append, and less than all.
    const append = run(Math.ceil((kill * LINES) / (KILLS + 1)));
    let at = before;
    for (let reads = random.integer(1, 6); reads > 0; reads -= 1) {
      const { status, headers } = await server.ask("GET", `log?live=long-poll&offset=${at}`);
      at = String(headers["stream-next-offset"]);
      if (status !== 204) continue;
      // Either it has not begun, or it has appended all that it was given.
      if (at !== before) break;
      reads += 1;
    }
    append.kill("SIGKILL");
    assert.equal((await append.ended).signal, "SIGKILL");
  }
  const last = await run().ended;
  assert.equal(last.status, 0, last.stderr);
  const again = await run().ended;
  assert.equal(again.status, 0, again.stderr);
  assert.equal(await server.textOf("log"), lines.join(""));
});
