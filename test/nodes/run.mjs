/**
 * Runs the server's tests on each version of Node that npm has brought here: answers that go straight to a socket lean on
 * names that Node does not document, so each version has to prove that they are there, or that all works without them.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
const FOLDERS = ["test/http", "test/http/handlers", "test/cli", "test/fuzz"];

const files = FOLDERS.flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(folder, name)));
const tests = ["test/server.test.ts", ...files.filter((file) => file.endsWith(".test.ts"))];
const { optionalDependencies } = JSON.parse(readFileSync(join(import.meta.dirname, "package.json"), "utf8"));
const failed = [];
for (const name of Object.keys(optionalDependencies)) {
  const node = join(import.meta.dirname, "node_modules", name, "bin/node");
  if (!existsSync(node)) {
    console.log(`${name} is not there for this platform: left out`);
    continue;
  }
  console.log(`\n--- ${name}: ${spawnSync(node, ["--version"]).stdout}`);
  const { status } = spawnSync(node, ["--import", "tsx", "--test", "--test-concurrency=4", "--test-reporter=dot", ...tests], { cwd: root, stdio: "inherit" });
  if (status !== 0) failed.push(name);
}
if (failed.length > 0) {
  console.error(`failed on ${failed.join(", ")}`);
  process.exit(1);
}
