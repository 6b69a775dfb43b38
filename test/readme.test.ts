import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { formatValue, OPTIONS, type OptionSpec } from "../src/options.js";
import { createServer } from "../src/server.js";
import { startNode } from "./helpers/process.js";
import { tempDir } from "./helpers/temp-dir.js";
import { parseEventStream } from "./protocol/event-stream-parser.js";

const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const INDEX = new URL("../src/index.ts", import.meta.url).href;
const PLACE = "http://127.0.0.1:4437/v1/stream/";

/** The code blocks under a heading of the README. */
function blocksUnder(heading: string): string[] {
  const section = README.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  assert.ok(section !== undefined, `the README has no heading ${heading}`);
  return [...section.matchAll(/^```\w+\n([\s\S]*?)^```$/gm)].map(([, code]) => code ?? "");
}

function onlyBlock(heading: string): string {
  const [block = "", ...more] = blocksUnder(heading);
  assert.equal(more.length, 0, `one example under ${heading}`);
  return block;
}

/** A server for one test; what it closes over is the address that replaces the README's. */
async function serve(context: TestContext): Promise<string> {
  const server = await createServer({ dir: tempDir(), port: 0 });
  context.after(() => server.close());
  return server.url;
}

async function bash(script: string): Promise<string> {
  const child = spawn("bash", ["-euo", "pipefail", "-c", script], { stdio: ["ignore", "pipe", "inherit"] });
  const [output, [status]] = await Promise.all([text(child.stdout), once(child, "close")]);
  assert.equal(status, 0, script);
  return output;
}

test("the curl session creates, appends, reads, follows, closes and deletes", async (context) => {
  const url = await serve(context);
  const commands = onlyBlock("Five minutes with curl")
    .replaceAll(PLACE, url)
    .split(/^# .*\n/m)
    .filter((command) => command !== "");
  const [create = "", append = "", read = "", follow = "", close = "", remove = ""] = commands;
  assert.equal(commands.length, 6);
  await bash(create);
  assert.match(await bash(append), /^HTTP\/1.1 204 [\s\S]*stream-next-offset: 0000000000000000_0000000012\d{6}\r/i);
  assert.match(await bash(read), /stream-up-to-date: true[\s\S]*\n\r\nstep 1 done\nstep 2 done\n$/i);
  // The reader goes on until the stream is closed.
  const following = bash(follow);
  await bash(close);
  const events = parseEventStream(await following);
  assert.deepEqual(events.map(({ type }) => type).slice(0, 2), ["data", "control"]);
  assert.equal(events[0]?.data, "step 1 done\nstep 2 done\n");
  assert.match(events.at(-1)?.data ?? "", /"streamClosed":true/);
  await bash(remove);
  assert.equal((await fetch(`${url}jobs/42`)).status, 404);
});

test("the forked conversation is read as one", async (context) => {
  const url = await serve(context);
  const output = await bash(onlyBlock("Branch a conversation").replaceAll(PLACE, url));
  assert.deepEqual(JSON.parse(output), ["What is a stream?", "A river.", "Of water?"]);
});

test("the EventSource example prints the data and ends with the stream", async (context) => {
  const url = await serve(context);
  const stream = `${url}chat/7`;
  await fetch(stream, { method: "PUT", headers: { "Content-Type": "text/plain", "Stream-Closed": "true" }, body: "hello" });
  const printed: string[] = [];
  const { promise, resolve } = withResolvers();
  /** What the example uses of a browser's EventSource. */
  class OneConnection {
    readonly listeners = new Map<string, (event: { data: string }) => void>();
    readonly close = resolve;

    constructor(address: string) {
      void fetch(address)
        .then((response) => response.text())
        .then((body) => {
          for (const { type, data } of parseEventStream(body)) this.listeners.get(type)?.({ data });
        });
    }

    addEventListener(type: string, listener: (event: { data: string }) => void): void {
      this.listeners.set(type, listener);
    }
  }
  const example = onlyBlock("In a browser").replaceAll(PLACE, url);
  // The example is code of ours, run as a page would run it.
  const run = new Function("EventSource", "console", example) as (source: typeof OneConnection, console: { log(line: string): void }) => void;
  run(OneConnection, { log: (line) => printed.push(line) });
  await promise;
  assert.deepEqual(printed, ["hello"]);
});

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}

test("the producer example is stored once, however often it is sent", async (context) => {
  const url = await serve(context);
  const append = onlyBlock("Exactly once").replaceAll(PLACE, url);
  assert.match(await bash(append), /^HTTP\/1.1 200 /);
  assert.match(await bash(append), /^HTTP\/1.1 204 /);
  assert.equal(await (await fetch(`${url}ledger`)).text(), "paid 10");
});

/** Runs an example of the library in a process of its own, with `before` put in front of the line that begins with `at`. */
async function runExample(context: TestContext, example: string, at: string, before: string): Promise<string> {
  const dir = tempDir();
  const code = example
    .replace('"streamdir"', JSON.stringify(INDEX))
    .replace('"./data"', JSON.stringify(join(dir, "data")))
    .replace("8080", "0")
    .replace(at, `${before}\n${at}`);
  const file = join(dir, "example.mjs");
  writeFileSync(file, code);
  const ended = await startNode(context, ["--import", import.meta.resolve("tsx"), file]).ended;
  assert.equal(ended.status, 0, ended.stderr);
  return ended.stdout;
}

test("the createServer example serves and closes", async (context) => {
  const [example = ""] = blocksUnder("In your own server");
  assert.match(await runExample(context, example, "await server.close", ""), /^http:\/\/127\.0\.0\.1:\d+\/v1\/stream\/\n$/);
});

test("the createHandler example serves streams beside its own pages", async (context) => {
  const [, example = ""] = blocksUnder("In your own server");
  const use = `
    await new Promise((resolve) => server.once("listening", resolve));
    const base = "http://127.0.0.1:" + server.address().port;
    console.log(await (await fetch(base + "/")).text());
    console.log((await fetch(base + "/v1/stream/a", { method: "PUT", body: "x" })).status);
    server.closeIdleConnections();`;
  assert.equal(await runExample(context, example, "// Later", use), "mine\n\n201\n");
});

test("the table of options is the table of the code", () => {
  const specs: readonly OptionSpec[] = Object.values(OPTIONS);
  const rows = specs.map((spec) => `| \`--${spec.flag}\` | \`${spec.env}\` | \`${formatValue(spec, spec.default)}\` | ${spec.help} |`);
  const table = ["| flag | variable | default | what |", "|---|---|---|---|", ...rows].join("\n");
  const [, shown] = /<!-- options:begin -->\n([\s\S]*?)\n<!-- options:end -->/.exec(README) ?? [];
  if (process.env["UPDATE_README"] !== undefined) {
    const begin = README.indexOf("<!-- options:begin -->");
    const end = README.indexOf("<!-- options:end -->");
    writeFileSync(fileURLToPath(new URL("../README.md", import.meta.url)), `${README.slice(0, begin)}<!-- options:begin -->\n${table}\n${README.slice(end)}`);
    return;
  }
  assert.equal(shown, table, "UPDATE_README=1 writes it anew");
});
