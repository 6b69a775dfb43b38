import assert from "node:assert/strict";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { build } from "../helpers/built-package.js";
import { lacksLimits } from "../helpers/machine.js";
import { lacksProc } from "../helpers/platform.js";
import { startNode, startProgram } from "../helpers/process.js";
import type { Ended } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const BIN = fileURLToPath(new URL("../../bin", import.meta.url));

/** Runs a copy of bin/ beside a dist/cli/main.js that holds `main`, or beside none; `nodeArgs` are Node's own. */
function runBin(
  t: TestContext,
  main: string | null,
  env: Readonly<Record<string, string>> = {},
  nodeArgs: readonly string[] = [],
): Promise<Ended> {
  const root = tempDir();
  cpSync(BIN, join(root, "bin"), { recursive: true });
  if (main !== null) {
    mkdirSync(join(root, "dist", "cli"), { recursive: true });
    writeFileSync(join(root, "package.json"), '{ "type": "module" }');
    writeFileSync(join(root, "dist", "cli", "main.js"), main);
  }
  return startNode(t, [...nodeArgs, join(root, "bin", "streamdir.js"), "a", "--b"], { env }).ended;
}

/** A copy of the package as it is published. */
function builtPackage(): string {
  const root = tempDir();
  cpSync(BIN, join(root, "bin"), { recursive: true });
  cpSync(join(BIN, "..", "package.json"), join(root, "package.json"));
  build("build:code", join(root, "dist"));
  build("build:page", join(root, "dist", "page"));
  return root;
}

/** A module that has Node say that it is another version, loaded before the command. */
function pretending(version: string): string[] {
  const file = join(tempDir(), "pretend.cjs");
  writeFileSync(file, `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } });`);
  return ["--require", file];
}

describe("bin/streamdir.js", () => {
  const { engines } = JSON.parse(readFileSync(join(BIN, "..", "package.json"), "utf8"));
  const [, major = 0, minor = 0] = /^>=(\d+)\.(\d+)$/.exec(engines.node)?.map(Number) ?? [];

  for (const version of ["0.12.18", "9.0.0", "18.20.8", `${major}.${minor - 1}.9`]) {
    test(`refuses Node ${version} in one line, and loads nothing`, async (t) => {
      const line = `streamdir: Node ${version} is too old: streamdir needs Node ${major}.${minor} or newer\n`;
      const { status, stdout, stderr } = await runBin(t, "console.log('loaded');", {}, pretending(version));
      assert.deepEqual([status, stdout, stderr], [64, "", line]);
    });
  }

  for (const version of [`${major}.${minor}.0`, `${major}.100.0`, `${major + 1}.0.0`, "100.0.0-nightly"]) {
    test(`runs on Node ${version}`, async (t) => {
      assert.equal((await runBin(t, "console.log('loaded');", {}, pretending(version))).stdout, "loaded\n");
    });
  }

  test("is written as the oldest Node reads it", () => {
    const source = readFileSync(join(BIN, "streamdir.js"), "utf8");
    const { outputText } = ts.transpileModule(source, { compilerOptions: { target: ts.ScriptTarget.ES5 } });
    const bare = (code: string): string => code.replace(/\s+/g, "");
    assert.equal(bare(outputText), bare(source));
  });

  for (const code of ["EMFILE", "ENFILE"]) {
    test(`says in one line that nothing can be opened: ${code}`, async (t) => {
      const { status, stderr } = await runBin(
        t,
        `throw Object.assign(new Error("${code}: too many open files, open 'x'"), { code: "${code}" });`,
      );
      assert.deepEqual(
        [status, stderr],
        [1, `streamdir: too few files can be opened here (${code}): raise the limit, for instance with ulimit -n 1024\n`],
      );
    });
  }

  test("serves the page and tells the version from what is built", async (t) => {
    const root = builtPackage();
    const server = startNode(t, [join(root, "bin", "streamdir.js"), join(root, "data"), "--port=0"]);
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const [, told, url = ""] = /"version":"([^"]+)".*"page":"([^"]+)"/.exec(await server.stdoutLine(/serving/)) ?? [];
    assert.equal(told, version);
    for (const file of readdirSync(join(BIN, "..", "src", "page"))) {
      const { status } = await fetch(new URL(file, url));
      assert.equal(status, 200, file);
    }
    server.kill("SIGTERM");
    assert.equal((await server.ended).status, 0);
  });

  test("has few modules to load, each as far from package.json as the source is", () => {
    const dir = join(builtPackage(), "dist");
    const modules = readdirSync(dir, { recursive: true, encoding: "utf8" }).filter((name) => /^(?!page).*\.js$/.test(name));
    assert.ok(modules.length < 50, `${modules.length} modules`);
    const others = modules.filter((name) => !/^chunks\/[^/]+$/.test(name)).sort();
    assert.deepEqual(others, ["cli/main.js", "index.js"]);
    for (const name of others)
      assert.doesNotMatch(readFileSync(join(dir, name), "utf8"), /import\.meta/, `${name} looks for files beside it`);
  });

  // Some versions of Node open all modules of a program at once, others one after another.
  test("serves or says why not in one line, however few files it may open", { skip: lacksLimits }, async (t) => {
    const root = builtPackage();
    for (const limit of [24, 40, 64, 80]) {
      const server = startNode(t, [join(root, "bin", "streamdir.js"), join(root, `data-${limit}`), "--port=0"], {
        under: ["prlimit", `--nofile=${limit}`],
      });
      const isReady = await server.stdoutLine(/serving/).then(
        () => true,
        () => false,
      );
      if (isReady) server.kill("SIGTERM");
      const { status, stderr } = await server.ended;
      if (isReady) assert.equal(status, 0, stderr);
      else assert.match(`${status} ${stderr}`, /^1 streamdir: .*EMFILE.*ulimit -n.*\n$/);
    }
  });

  test("hides no other fault", async (t) => {
    const { status, stderr } = await runBin(t, 'throw new TypeError("ours");');
    assert.equal(status, 1);
    assert.match(stderr, /TypeError: ours\n {4}at /);
  });

  test("starts dist/cli/main.js with its arguments", async (t) => {
    const { status, stdout } = await runBin(t, "console.log(process.argv.slice(2).join()); process.exitCode = 3;");
    assert.deepEqual([status, stdout], [3, "a,--b\n"]);
  });

  test("says what to do when there is no dist", async (t) => {
    const { status, stderr } = await runBin(t, null);
    assert.equal(status, 1);
    assert.match(stderr, /^streamdir: dist\/ is missing here: .*allow its prepare script.*\n$/);
  });

  test("says what to do in a clone that is not built", async (t) => {
    const root = tempDir();
    cpSync(BIN, join(root, "bin"), { recursive: true });
    mkdirSync(join(root, "src"));
    const { status, stderr } = await startNode(t, [join(root, "bin", "streamdir.js")]).ended;
    assert.deepEqual([status, stderr], [1, "streamdir: dist/ is missing here: run npm run build\n"]);
  });

  test("is a child of npm start itself: a shell in between would not pass a signal on", async (t) => {
    const root = tempDir();
    const { scripts } = JSON.parse(readFileSync(join(BIN, "..", "package.json"), "utf8"));
    writeFileSync(join(root, "package.json"), JSON.stringify({ scripts: { start: scripts.start } }));
    mkdirSync(join(root, "bin"));
    writeFileSync(join(root, "bin", "streamdir.js"), "console.log(`a child of ${process.ppid}`);");
    const npm = startProgram(t, "npm", ["start"], { cwd: root, env: { NPM_CONFIG_UPDATE_NOTIFIER: "false" } });
    const { status, stdout } = await npm.ended;
    assert.equal(status, 0);
    assert.match(stdout, new RegExp(`^a child of ${npm.pid}$`, "m"));
  });

  // The pool's threads are only to be seen in /proc; Node has some of its own besides.
  const countThreads = 'import { readdirSync, stat } from "node:fs"; stat(".", () => console.log(readdirSync("/proc/self/task").length));';
  test("starts a pool of 32 threads, or of as many as the environment says", { skip: lacksProc }, async (t) => {
    const runs = [runBin(t, countThreads), runBin(t, countThreads, { UV_THREADPOOL_SIZE: "4" })];
    const [byDefault = 0, asTold = 0] = (await Promise.all(runs)).map(({ stdout }) => Number(stdout));
    assert.equal(byDefault - asTold, 28);
  });
});
