import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { tempDir } from "../helpers/temp-dir.js";
import type { Mutant } from "./mutants/mutant.js";
import type { FailedSeed, WorkerReport } from "./seeds.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** What the histories are made of. */
const PARTS = ["package.json", "src", "test/faults", "test/helpers"];
/** A single history never takes so long, however busy the machine is: with the fault it hangs. */
const HANG_MS = 120_000;

/** A copy of the tree in which one line of the server is wrong. */
export class MutatedTree {
  readonly #dir = tempDir();

  constructor(mutant: Mutant) {
    for (const part of PARTS) cpSync(join(ROOT, part), join(this.#dir, part), { recursive: true });
    writeFileSync(join(this.#dir, "src", mutant.file), mutated(mutant));
  }

  /** The first of the seeds from `from` on, up to `most` of them, whose history finds the fault; `null` when none does. */
  async findingSeed(from: number, most: number): Promise<FailedSeed | null> {
    const worker = fork(join(this.#dir, "test/faults/seeds-worker.ts"), ["histories", ...[from, from + most, 1, 1].map(String)], {
      cwd: ROOT,
      execArgv: ["--import", "tsx"],
      env: { ...process.env, NODE_V8_COVERAGE: "" },
      // With the fault it may say anything.
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    let seed = from;
    const hangs = setTimeout(() => worker.kill("SIGKILL"), HANG_MS);
    try {
      return await new Promise<FailedSeed | null>((resolve, reject) => {
        worker.on("message", ({ done, failed: [first] }: WorkerReport) => {
          seed += done;
          hangs.refresh();
          if (first !== undefined) resolve(first);
        });
        worker.on("error", reject);
        // A fault that nobody waits for ends the process.
        worker.on("exit", (status, signal) =>
          resolve(status === 0 ? null : { seed, says: signal === null ? `the process ends with ${status}` : "it hangs" }),
        );
      });
    } finally {
      clearTimeout(hangs);
      worker.kill("SIGKILL");
    }
  }

  /** Removes the copy. */
  remove(): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** The text of the file with the wrong code. Fails where its code is not there, or more than once: rewrite the mutant then. */
export function mutated({ fault, file, code, becomes }: Mutant): string {
  const text = readFileSync(join(ROOT, "src", file), "utf8");
  const places = [...text.matchAll(anyLayoutOf(code))];
  const [place] = places;
  assert.ok(
    place !== undefined && places.length === 1,
    `"${fault}": ${file} has this ${places.length} times, and should have it once: ${code}`,
  );
  return `${text.slice(0, place.index)}${becomes}${text.slice(place.index + place[0].length)}`;
}

/** Matches `code` however the formatter breaks its lines: white space counts for nothing, nor does a comma before a closing bracket. */
function anyLayoutOf(code: string): RegExp {
  const characters = [...code.replace(/\s+/g, "")].map((character) => character.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&"));
  return new RegExp(characters.join("\\s*").replace(/\\s\*(?=\\[)\]}])/g, "\\s*,?\\s*"), "g");
}
