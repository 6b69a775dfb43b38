import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";

const HOOK = `import { writeSync } from "node:fs";
export async function load(url, context, next) {
  writeSync(2, url + "\\n");
  return next(url, context);
}`;
const REGISTER = `import { register } from "node:module"; register(${JSON.stringify(urlOf(HOOK))});`;

function urlOf(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

/** The files of src that the command loads for these words. */
function loadedFor(...args: string[]): string[] {
  const root = pathToFileURL("src/").href;
  const main = ["--import", "tsx", "--import", urlOf(REGISTER), "src/cli/main.ts"];
  const { stderr } = spawnSync(process.execPath, [...main, ...args], { encoding: "utf8" });
  const loaded = stderr.split("\n").flatMap((line) => (line.startsWith(root) ? [line.slice(root.length)] : []));
  assert.ok(loaded.includes("cli/main.ts"), stderr);
  return loaded;
}

describe("a command loads only what it uses", () => {
  test("a server nothing that speaks to one", () => {
    const loaded = loadedFor("serve", "--port", "none");
    assert.deepEqual(
      loaded.filter((file) => file.startsWith("cli/client/") || file.startsWith("cli/completions/")),
      [],
    );
  });

  test("what speaks to a server nothing of one", () => {
    const loaded = loadedFor("ls", "--unknown");
    assert.ok(loaded.includes("cli/client/streams/ls.ts"));
    assert.deepEqual(
      loaded.filter((file) => file.startsWith("http/") || file === "server.ts" || file === "cli/serve.ts"),
      [],
    );
  });
});
