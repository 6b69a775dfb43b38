import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { endByLostTerminal } from "../../../src/cli/command/lost-terminal.js";
import { tempDir } from "../../helpers/temp-dir.js";

const MAIN = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url));
const SCRIPT = "/usr/bin/script";

describe("a process whose terminal has gone", () => {
  for (const [title, before, after, ends] of [
    ["ends by SIGHUP", [0, 2], [0], true],
    ["that has it still does not", [0, 1, 2], [0, 1, 2], false],
    ["that never had one does not", [], [], false],
  ] as const)
    test(title, () => {
      let terminals: readonly number[] = before;
      const sent: unknown[] = [];
      const own = Object.assign(new EventEmitter(), {
        pid: 7,
        kill(pid: number, signal: string): void {
          sent.push(pid, signal, own.listenerCount("SIGHUP"));
        },
      });
      own.on("SIGHUP", () => {});
      endByLostTerminal(own, (fd) => terminals.includes(fd));
      terminals = after;
      own.emit("exit");
      assert.deepEqual(sent, ends ? [7, "SIGHUP", 0] : []);
    });

  // The shell is told that the terminal has gone, and passes that on.
  test("stops a server in order, and does not abort", { skip: !existsSync(SCRIPT), timeout: 120_000 }, async (context) => {
    const serve = `'${process.execPath}' --import '${import.meta.resolve("tsx")}' '${MAIN}' serve '${join(tempDir(), "data")}' --port 0`;
    const waits = `trap 'kill -HUP $p' HUP; ${serve} & p=$!; wait $p; wait $p; echo "ended with $?" >&3`;
    const terminal = spawn(SCRIPT, ["--quiet", "--flush", "--command", waits, "/dev/null"], {
      stdio: ["ignore", "pipe", "ignore", "pipe"],
    });
    context.after(() => terminal.kill("SIGKILL"));
    const { stdout } = terminal;
    assert.ok(stdout !== null);
    const shown = createInterface({ input: stdout });
    for await (const line of shown) if (line.includes("http://")) break;
    terminal.kill("SIGKILL");
    assert.equal(await text(terminal.stdio[3] as Readable), "ended with 129\n");
  });
});
