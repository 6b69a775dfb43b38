import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { guarded, guardedLog } from "../../src/server/caller-hooks.js";
import { startNode } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const FAULT = new Error("the hook's");

describe("what a caller's code throws", () => {
  test("is reported, and goes no further", () => {
    const calls: unknown[] = [];
    const hook = guarded(
      (...args: readonly number[]) => {
        calls.push(args);
        throw FAULT;
      },
      (error) => calls.push(error),
    );
    hook(1, 2);
    assert.deepEqual(calls, [[1, 2], FAULT]);
  });

  test("is reported of each method of a log, which is called as it was", () => {
    const reports: unknown[] = [];
    class Broken {
      isDebug = false;
      readonly told: unknown[] = [];
      debug = (...args: readonly unknown[]): void => this.#tell("debug", args);
      info = (...args: readonly unknown[]): void => this.#tell("info", args);
      warn = (...args: readonly unknown[]): void => this.#tell("warn", args);
      error(...args: readonly unknown[]): void {
        this.#tell("error", args);
      }
      #tell(level: string, args: readonly unknown[]): void {
        this.told.push([level, ...args]);
        throw FAULT;
      }
    }
    const broken = new Broken();
    const log = guardedLog(broken, (error) => reports.push(error));
    for (const level of ["debug", "info", "warn", "error"] as const) log[level](`at ${level}`, { n: 1 });
    assert.deepEqual(
      broken.told,
      ["debug", "info", "warn", "error"].map((level) => [level, `at ${level}`, { n: 1 }]),
    );
    assert.deepEqual(reports, [FAULT, FAULT, FAULT, FAULT]);
    assert.equal(log.isDebug, false);
    broken.isDebug = true;
    assert.equal(log.isDebug, true);
  });
});

/** A program whose log and `onFault` throw whatever comes, and which says what the process was told. */
const PROGRAM = `
  import { rmSync } from "node:fs";
  import { createServer } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)};
  const [dir] = process.argv.slice(1);
  const told = new Set();
  process.on("uncaughtException", ({ message }) => void told.add(message));
  const fail = (message) => () => { throw new Error(message); };
  const log = { isDebug: true, debug: fail("debug"), info: fail("info"), warn: fail("warn"), error: fail("error") };
  const server = await createServer({ dir, port: 0, log, onFault: fail("onFault") });
  const put = async (name) => (await fetch(server.url + name, { method: "PUT", body: "x" })).status;
  const statuses = [await put("a"), await put("b")];
  for (const name of ["journal", "streams"]) rmSync(dir + "/" + name, { recursive: true });
  await server.close().catch(({ message }) => console.error(message));
  await server.close().catch(() => {});
  console.log(JSON.stringify({ statuses, told: [...told].sort() }));
`;

test("requests are answered and the directory is given back, whatever hooks throw and the disk does", async (context) => {
  const dir = join(tempDir(), "data");
  const args = ["--import", import.meta.resolve("tsx"), "--input-type=module", "--eval", PROGRAM, dir];
  const { status, stdout, stderr } = await startNode(context, args).ended;
  assert.equal(status, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { statuses: [201, 201], told: ["debug", "error", "onFault"] });
  assert.ok(existsSync(dir));
  assert.deepEqual(
    readdirSync(dir).filter((name) => name.startsWith("lock")),
    [],
  );
});
