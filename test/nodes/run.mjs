/**
 * Runs on each version of Node that npm has brought here what can differ between them: answers that go straight to a socket
 * lean on names that Node does not document, so each version has to prove that they are there, or that all works without
 * them; TLS and HTTP/2 are Node's own; the journal and the command line lean on its files, timers and streams.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
/** A file of tests that stands still is named; the slowest takes a tenth of it. */
const TEST_TIMEOUT_MS = 300_000;
/** The oldest and the newest are run without the names too, and pass the official suite: that waits for most of a minute. */
const EXTREMES = ["node-20", "node-26"];
/** The two request paths, on connections that behave and that do not. */
const PATHS = [
  "test/server.test.ts",
  ...["raw-cases", "half-close", "pipeline", "client-errors", "staged-end", "timeouts", "http-server", "http2-requests"].map(
    (name) => `test/http/${name}.test.ts`,
  ),
];
/** What is run, and the module that prepares it. */
const RUNS = [
  {
    title: "as it is",
    tests: [
      ...PATHS,
      ...testsIn("test/http/node", "test/http/http2", "test/http/listen"),
      ...testsIn("test/storage/file/journal", "test/cli/client/append"),
    ],
    prepared: [],
  },
  {
    title: "without Node's own names",
    tests: [...testsIn("test/http/handlers"), ...PATHS].filter((file) => !isOfOnePath(file)),
    prepared: ["--import", "./test/nodes/without-direct-connection.ts"],
    on: EXTREMES,
  },
];

/** Whether a file of tests is of the direct path alone, or takes each path by itself. */
function isOfOnePath(file) {
  return /DirectConnection|direct-exchange|request-paths/.test(readFileSync(join(root, file), "utf8"));
}

function testsIn(...folders) {
  const files = folders.flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)));
  return files.filter((file) => file.endsWith(".test.ts"));
}

/** The official suite against the built server, which this version of Node runs. */
function passesSuite(node) {
  const folder = join(root, "test/conformance");
  const vitest = join(folder, "node_modules/vitest/vitest.mjs");
  const { status } = spawnSync(process.execPath, [vitest, "run", "suite.test.ts", "--reporter=dot", `--testTimeout=${TEST_TIMEOUT_MS}`], {
    cwd: folder,
    env: { ...process.env, CONFORMANCE_NODE: node, NO_COLOR: "1" },
    stdio: "inherit",
  });
  return status === 0;
}

const { optionalDependencies } = JSON.parse(readFileSync(join(import.meta.dirname, "package.json"), "utf8"));
const TOO_OLD = "node-too-old";
const failed = [];
for (const name of Object.keys(optionalDependencies)) {
  const node = join(import.meta.dirname, "node_modules", name, "bin/node");
  if (!existsSync(node)) {
    console.log(`${name} is not there for this platform: left out`);
    continue;
  }
  if (name === TOO_OLD) {
    const { status, stderr } = spawnSync(node, ["bin/streamdir.js"], { cwd: root, encoding: "utf8" });
    const isRefused = status === 1 && /^streamdir: Node 0\.12\.18 is too old: .*\n$/.test(stderr);
    console.log(`${name}: ${stderr}`);
    if (!isRefused) failed.push(name);
    continue;
  }
  for (const { title, tests, prepared, on = [name] } of RUNS) {
    if (!on.includes(name)) continue;
    console.log(`\n--- ${name} ${String(spawnSync(node, ["--version"]).stdout).trim()}, ${title}`);
    const options = [
      "--import",
      "tsx",
      ...prepared,
      "--test",
      `--test-timeout=${TEST_TIMEOUT_MS}`,
      "--test-concurrency=4",
      "--test-reporter=./test/nodes/failures.mjs",
    ];
    const { status } = spawnSync(node, [...options, ...tests], { cwd: root, stdio: "inherit" });
    if (status !== 0) failed.push(`${name} ${title}`);
  }
  if (!EXTREMES.includes(name)) continue;
  console.log(`\n--- ${name}, the official suite`);
  if (!passesSuite(node)) failed.push(`${name} the official suite`);
}
console.log(`\nin all ${Math.round(performance.now() / 1000)} s`);
if (failed.length > 0) {
  console.error(`failed on ${failed.join(", ")}`);
  process.exit(1);
}
