import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { freePort } from "../helpers/free-ports.js";
import { startNode, startStreamdir } from "../helpers/process.js";
import { ask } from "../helpers/real-server.js";
import { tempDir } from "../helpers/temp-dir.js";

const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
/** A command whose standard output is a disk without room. */
const ON_A_FULL_DISK = ["bash", "-c", 'exec "$@" > /dev/full', "bash"];

describe("the command", () => {
  test("prints its help and ends with 0", async (t) => {
    const { status, stdout, stderr } = await startStreamdir(t, ["--help"]).ended;
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /^Usage: streamdir \[serve\|verify\|repair\|backup\|upgrade\|systemd\] \[DIR\] \[flags\]\n/);
  });

  test("prints the help of one command", async (t) => {
    const { status, stdout } = await startStreamdir(t, ["verify", "--help"]).ended;
    assert.equal(status, 0);
    assert.match(stdout, /^Usage: streamdir verify \[DIR\] \[flags\]\n/);
    const { stdout: served } = await startStreamdir(t, ["serve", "--help"]).ended;
    assert.match(served, /^Usage: streamdir \[serve/);
  });

  for (const [asked, as] of [
    ["help", "--help"],
    ["help token add", "token add --help"],
    ["help verify", "verify --help"],
    ["help tail", "tail --help"],
  ] as const)
    test(`takes ${asked} as ${as}`, async (t) => {
      const [one, other] = await Promise.all([asked, as].map((line) => startStreamdir(t, line.split(" ")).ended));
      assert.equal(one?.status, 0);
      assert.deepEqual(one, other);
    });

  test("prints the version of its package and ends with 0", async (t) => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
    const { status, stdout, stderr } = await startStreamdir(t, ["--version"]).ended;
    assert.deepEqual([status, stdout, stderr], [0, `${version}\n`, ""]);
  });

  const wrong: readonly [args: readonly string[], env: Readonly<Record<string, string>>, line: string][] = [
    [["--port", "x"], {}, '--port must be from 0 to 65535, not "x"'],
    [["tail"], {}, "streamdir tail needs NAME"],
    [["help", "dir"], {}, 'unknown command "dir"; streamdir --help lists them'],
    [["help", "tail", "dir"], {}, 'streamdir help takes one command, not "tail dir"'],
    [["--port", "0", "tail"], {}, "a command stands before all flags: streamdir tail; a directory of that name is ./tail"],
    [
      ["rm", "p", "--yes"],
      { STREAMDIR_SERVER: "http://prod:4437" },
      'unknown environment variable "STREAMDIR_SERVER"; did you mean STREAMDIR_URL?',
    ],
    [
      ["token", "list", "--auth", "auth.json"],
      { STREAMDIR_AUHT: "other.json" },
      'unknown environment variable "STREAMDIR_AUHT"; did you mean STREAMDIR_AUTH?',
    ],
    [[], { STREAMDIR_PROT: "1" }, 'unknown environment variable "STREAMDIR_PROT"; did you mean STREAMDIR_PORT?'],
  ];
  for (const [args, env, line] of wrong) {
    test(`ends with 64 and makes no directory: ${line}`, async (t) => {
      const cwd = tempDir();
      const { status, stdout, stderr } = await startStreamdir(t, args, { cwd, env }).ended;
      assert.deepEqual([status, stdout, stderr], [64, "", `streamdir: ${line}\n`]);
      assert.deepEqual(readdirSync(cwd), []);
    });
  }
});

describe("an output that can't be written", { skip: !existsSync("/dev/full") && "there is no /dev/full" }, () => {
  for (const args of [["--version"], ["serve", "--help"], ["systemd"], ["completions", "fish"]])
    test(`ends streamdir ${args.join(" ")} with 74 and a line`, async (t) => {
      const { status, stderr } = await startStreamdir(t, args, { under: ON_A_FULL_DISK }).ended;
      assert.deepEqual([status, stderr], [74, "streamdir: the output can't be written: ENOSPC: no space left on device, write\n"]);
    });

  test("changes no status that says more", async (t) => {
    const { status, stderr } = await startStreamdir(t, ["verify", tempDir()], { under: ON_A_FULL_DISK }).ended;
    assert.equal(status, 1, stderr);
  });

  test("does not end a server, nor change its status", async (t) => {
    const port = await freePort();
    const server = startStreamdir(t, ["serve", tempDir(), "--port", String(port)], { under: ON_A_FULL_DISK });
    const answers = (): Promise<boolean> =>
      ask(`http://127.0.0.1:${port}/`, "GET").then(
        () => true,
        () => false,
      );
    while (!(await answers()));
    server.kill("SIGTERM");
    const { status, stderr } = await server.ended;
    assert.equal(status, 0, stderr);
  });
});

describe("a verb that rejects", () => {
  /** Standard output throws, and something keeps the process alive. */
  const rejecting = (thrown: string): string[] => {
    const code = `process.stdout.write = () => { throw ${thrown}; }; setInterval(() => {}, 1000);`;
    return ["--import", `data:text/javascript,${encodeURIComponent(code)}`, "--import", import.meta.resolve("tsx"), MAIN, "systemd"];
  };

  test("ends with 70 and one line, whatever it has left open", async (t) => {
    const { status, stdout, stderr } = await startNode(t, rejecting('new TypeError("ours")')).ended;
    assert.deepEqual([status, stdout], [70, ""]);
    assert.match(stderr, /^streamdir: this is a fault of streamdir: TypeError: ours\\u000a {4}at [^\n]*\n$/);
  });

  test("leaves too few files to bin/start.js", async (t) => {
    const { status, stderr } = await startNode(t, rejecting('Object.assign(new Error("files"), { code: "EMFILE" })')).ended;
    assert.equal(status, 1);
    assert.doesNotMatch(stderr, /fault of streamdir/);
  });
});
