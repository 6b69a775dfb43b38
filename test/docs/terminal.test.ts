import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { promisify } from "node:util";
import { STREAMDIR_IN_SHELL } from "../helpers/page-examples.js";
import { RealServer } from "../helpers/real-server.js";

/** The lines of each terminal of the picture. */
function terminals(): string[][] {
  const picture = readFileSync(new URL("../../docs/terminal.svg", import.meta.url), "utf8");
  return picture
    .split("<g")
    .slice(1)
    .map((part) => [...part.matchAll(/<text class="k[^>]*>(.*?)<\/text>/g)].map(([, line = ""]) => line.replaceAll(/<[^>]*>/g, "")));
}

test("the terminals of the picture print what they show", async (context) => {
  const [writing = [], following = []] = terminals();
  const [create = "", ...rest] = writing.map((line) => line.replace(/^\$ /, ""));
  assert.equal(rest.length, 2);
  const server = new RealServer(context, []);
  await server.start();
  const env = { ...process.env, STREAMDIR_URL: new URL(server.url).origin };
  const run = (command: string): Promise<unknown> => promisify(execFile)("bash", ["-eu", "-c", `${STREAMDIR_IN_SHELL}${command}`], { env });
  await run(create);
  const [tail = "", ...printed] = following.map((line) => line.replace(/^\$ /, ""));
  const child = spawn("bash", ["-eu", "-c", `${STREAMDIR_IN_SHELL}${tail}`], { env, stdio: ["ignore", "pipe", "inherit"] });
  const [output, over] = [text(child.stdout), once(child, "close")];
  await once(child.stdout, "data");
  for (const command of rest) await run(command);
  assert.deepEqual(await over, [0, null]);
  // The last line is the prompt again: the stream is closed, and the command has ended.
  assert.deepEqual((await output).trimEnd().split("\n"), printed.slice(0, -1));
  assert.equal(printed.at(-1), "$");
});
