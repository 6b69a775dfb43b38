import assert from "node:assert/strict";
import test from "node:test";
import { formatValue, OPTIONS, type OptionSpec } from "../src/options.js";
import { bash, Page, PAGE_ORIGIN, runExample, servePage as serve } from "./helpers/page-examples.js";
import { parseEventStream } from "./protocol/event-stream-parser.js";

const README = new Page("README.md");
const PLACE = `${PAGE_ORIGIN}/v1/stream/`;

test("the curl session creates, appends, reads, follows, closes and deletes", async (context) => {
  const url = await serve(context);
  const commands = README.onlyBlock("Five minutes with curl")
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
  const output = await bash(README.onlyBlock("Branch a conversation").replaceAll(PLACE, url));
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
  const example = README.onlyBlock("In a browser").replaceAll(PLACE, url);
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
  const append = README.onlyBlock("Exactly once").replaceAll(PLACE, url);
  assert.match(await bash(append), /^HTTP\/1.1 200 /);
  assert.match(await bash(append), /^HTTP\/1.1 204 /);
  assert.equal(await (await fetch(`${url}ledger`)).text(), "paid 10");
});

test("the createServer example serves and closes", async (context) => {
  const [example = ""] = README.blocksUnder("In your own server");
  assert.match(await runExample(context, example, { at: "await server.close", before: "" }), /^http:\/\/127\.0\.0\.1:\d+\/v1\/stream\/\n$/);
});

test("the createHandler example serves streams beside its own pages", async (context) => {
  const [, example = ""] = README.blocksUnder("In your own server");
  const use = `
    await new Promise((resolve) => server.once("listening", resolve));
    const base = "http://127.0.0.1:" + server.address().port;
    console.log(await (await fetch(base + "/")).text());
    console.log((await fetch(base + "/v1/stream/a", { method: "PUT", body: "x" })).status);
    server.closeIdleConnections();`;
  assert.equal(await runExample(context, example, { at: "// Later", before: use }), "mine\n\n201\n");
});

test("the table of options is the table of the code", () => {
  const specs: readonly OptionSpec[] = Object.values(OPTIONS);
  const rows = specs.map((spec) => `| \`--${spec.flag}\` | \`${spec.env}\` | \`${formatValue(spec, spec.default)}\` | ${spec.help} |`);
  const table = ["| flag | variable | default | what |", "|---|---|---|---|", ...rows].join("\n");
  README.assertTable("README.md", "options", table);
});
