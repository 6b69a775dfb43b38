import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { MANIFEST, ownManifest, packagedFiles } from "../../src/ops/packaged-files.js";
import { startNode } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

test("the files of a folder are read, and there are none without it", () => {
  const dir = tempDir();
  writeFileSync(join(dir, "a.js"), "one");
  writeFileSync(join(dir, "b.css"), "two");
  const folder = pathToFileURL(`${dir}/`);
  assert.deepEqual([...packagedFiles(folder)].map(([name, bytes]) => [name, String(bytes)]).sort(), [
    ["a.js", "one"],
    ["b.css", "two"],
  ]);
  assert.equal(packagedFiles(new URL("none/", folder)).size, 0);
  mkdirSync(join(dir, "folder"));
  assert.throws(() => packagedFiles(folder), { code: "EISDIR" });
});

describe("a package.json", () => {
  const foreign: readonly (readonly [title: string, text: string | null])[] = [
    ["that is not there", null],
    ["of another program", '{ "name": "chats", "version": "7.0.0" }'],
    ["without a name", "{}"],
    ["that is no object", "7"],
    ["that is no JSON", "{"],
  ];
  for (const [title, text] of foreign)
    test(`${title} is not this package's`, () => {
      const dir = tempDir();
      if (text !== null) writeFileSync(join(dir, "package.json"), text);
      assert.equal(ownManifest(pathToFileURL(join(dir, "dist", "chunks", "a.js")).href), null);
    });

  test("is this package's also with a byte order mark", () => {
    const dir = tempDir();
    writeFileSync(join(dir, "package.json"), '\uFEFF{ "name": "@a/streamdir", "version": "7.0.0" }');
    assert.equal(ownManifest(pathToFileURL(join(dir, "dist", "chunks", "a.js")).href)?.version, "7.0.0");
  });

  test("is not looked for where nobody knows where this is", () => assert.equal(ownManifest(undefined), null));

  test("of this package is", () => assert.equal(MANIFEST?.name, "streamdir"));
});

describe("a program that has streamdir in its bundle", () => {
  for (const format of ["esm", "cjs"])
    test(`as ${format} serves streams, and none of its own files`, async (context) => {
      const dir = tempDir();
      for (const folder of ["page", "dist"]) mkdirSync(join(dir, folder));
      writeFileSync(join(dir, "page", "index.html"), "the program's own");
      writeFileSync(join(dir, "package.json"), '{ "name": "chats" }');
      const program = join(dir, "dist", format === "esm" ? "program.mjs" : "program.cjs");
      writeFileSync(join(dir, "program.ts"), PROGRAM);
      const bundle = ["--bundle", "--platform=node", `--format=${format}`, `--outfile=${program}`, "--log-level=error"];
      const esbuild = fileURLToPath(new URL("../../node_modules/.bin/esbuild", import.meta.url));
      execFileSync(esbuild, [join(dir, "program.ts"), ...bundle]);
      const { status, stdout, stderr } = await startNode(context, [program, join(dir, "data")]).ended;
      assert.equal(status, 0, stderr);
      assert.deepEqual(stdout.trim().split("\n"), ["201", "hello", "400", "true", "unknown"]);
    });
});

const PROGRAM = `
  import { createServer } from ${JSON.stringify(fileURLToPath(new URL("../../src/index.ts", import.meta.url)))};
  async function run() {
    const server = await createServer({ dir: process.argv[2], port: 0, ui: true, logLevel: "warn", adminListen: "127.0.0.1:0" });
    const put = await fetch(server.url + "a", { method: "PUT", headers: { "Content-Type": "text/plain" }, body: "hello" });
    console.log(put.status);
    console.log(await (await fetch(server.url + "a?offset=-1")).text());
    console.log((await fetch(server.url + "__ds/ui/")).status);
    const metrics = await (await fetch("http://" + server.adminListening[0].replace(/^http:\\/\\//, "") + "/metrics")).text();
    console.log(/streamdir_build_info/.test(metrics));
    console.log(/version="([^"]*)"/.exec(metrics)[1]);
    await server.close();
  }
  run();
`;
