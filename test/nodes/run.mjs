/**
 * Runs the server's tests on each version of Node that npm has brought here: answers that go straight to a socket lean on
 * names that Node does not document, so each version has to prove that they are there, or that all works without them.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
/** A file of tests that stands still is named; the slowest takes a tenth of it. */
const TEST_TIMEOUT_MS = 300_000;
/** Versions that are run without the names too: the oldest and the newest. */
const NAMELESS = ["node-20", "node-26"];
const INTERFACE = testsIn("test/http");
/** What is run, and the module that prepares it. */
const RUNS = [
  { title: "as it is", tests: ["test/server.test.ts", ...INTERFACE, ...testsIn("test/fuzz", "test/cli")], prepared: [] },
  {
    title: "without Node's own names",
    tests: INTERFACE.filter((file) => !isOfOnePath(file)),
    prepared: ["--import", "./test/nodes/without-direct-connection.ts"],
    on: NAMELESS,
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
}
if (failed.length > 0) {
  console.error(`failed on ${failed.join(", ")}`);
  process.exit(1);
}
