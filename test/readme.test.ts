import assert from "node:assert/strict";
import test from "node:test";
import { formatValue, OPTIONS, type OptionSpec } from "../src/options.js";
import { bash, Page, PAGE_ORIGIN, runExample, servePage as serve, STREAMDIR_IN_SHELL } from "./helpers/page-examples.js";
import { tempDir } from "./helpers/temp-dir.js";
import { parseEventStream } from "./protocol/event-stream-parser.js";

const README = new Page("README.md");
const PLACE = `${PAGE_ORIGIN}/v1/stream/`;

/** One command of an example, and the lines that it is said to print. */
interface Step {
  readonly script: string;
  readonly prints: readonly string[];
}

/** The commands of a shell example: a comment stands before each, and `#=` before what is printed. */
function stepsUnder(heading: string, url: string): Step[] {
  const parts = README.onlyBlock(heading)
    .replaceAll(PLACE, url)
    .split(/^# .*\n/m)
    .filter((part) => part.trim() !== "");
  return parts.map((part) => {
    const lines = part.trimEnd().split("\n");
    const isPrinted = (line: string): boolean => line.startsWith("#= ");
    return { script: lines.filter((line) => !isPrinted(line)).join("\n"), prints: lines.filter(isPrinted).map((line) => line.slice(3)) };
  });
}

/** Offsets end with a check that differs from stream to stream. */
function unchecked(text: string): string {
  return text.replace(/(\d{16}_\d{10})\d{6}/g, "$1xxxxxx");
}

/** All lines are there, in their order; one that ends with an ellipsis is the beginning of what is printed. */
function assertPrints(output: string, { script, prints }: Step): void {
  const lines = unchecked(output).split(/\r?\n/);
  for (const wanted of prints) {
    const [begun = "", ...cut] = unchecked(wanted).split(/…$/);
    const at = lines.findIndex((line) => (cut.length === 0 ? line === begun : line.startsWith(begun)));
    assert.ok(at >= 0, `${script}\nprints ${wanted}\nbut not in ${JSON.stringify(output)}`);
    lines.splice(0, at + 1);
  }
}

async function follow(steps: readonly Step[]): Promise<void> {
  for (const step of steps) assertPrints(await bash(step.script), step);
}

test("the curl session creates, appends, reads, follows, closes and deletes, prints what it says, and again", async (context) => {
  const url = await serve(context);
  const [create, append, read, live, close, remove, ...more] = stepsUnder("Five minutes with curl", url);
  assert.ok(create && append && read && live && close && remove && more.length === 0);
  for (let run = 0; run < 2; run += 1) {
    await follow([create, append]);
    assert.equal(await bash(read.script), `${read.prints.join("\n")}\n`);
    // The reader goes on until the stream is closed.
    const following = bash(live.script);
    await follow([close]);
    const output = await following;
    assertPrints(output, live);
    assert.match(parseEventStream(output).at(-1)?.data ?? "", /"streamClosed":true/);
    await follow([remove]);
    assert.equal((await fetch(`${url}jobs/42`)).status, 404);
  }
});

for (const heading of ["Branch a conversation", "Stored once"]) {
  test(`the commands under "${heading}" print what they say, and again`, async (context) => {
    const url = await serve(context);
    const steps = stepsUnder(heading, url);
    assert.ok(steps.some(({ prints }) => prints.length > 0));
    for (let run = 0; run < 2; run += 1) await follow(steps);
  });
}

test("the terminal session prints what it says, and again", async (context) => {
  const steps = stepsUnder("From a terminal", PLACE);
  const place = `${STREAMDIR_IN_SHELL}export STREAMDIR_URL=${await serve(context)}; cd ${tempDir()}\n`;
  for (let run = 0; run < 2; run += 1)
    for (const { script, prints } of steps) assert.equal(await bash(place + script), prints.map((line) => `${line}\n`).join(""), script);
});

test("the forked conversation is read as one", async (context) => {
  const url = await serve(context);
  const steps = stepsUnder("Branch a conversation", url);
  for (const { script } of steps) await bash(script);
  assert.deepEqual(await (await fetch(`${url}chats/9-retry`)).json(), ["What is a stream?", "A river.", "Of water?"]);
});

test("the EventSource example makes its stream, prints the data and ends with the stream, and again", async (context) => {
  const url = await serve(context);
  for (let run = 0; run < 2; run += 1) {
    const { promise: ended, resolve: end } = withResolvers();
    const printed: string[] = [];
    /** What the example uses of a browser's EventSource. */
    class OneConnection {
      readonly listeners = new Map<string, (event: { data: string }) => void>();
      readonly close = end;

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
    const run = new Function("EventSource", "console", `return (async () => {${example}})()`) as (
      source: typeof OneConnection,
      console: { log(line: string): void },
    ) => Promise<void>;
    await run(OneConnection, { log: (line) => printed.push(line) });
    await fetch(`${url}chat/7`, { method: "POST", headers: { "Stream-Closed": "true" } });
    await ended;
    assert.deepEqual(printed, ["hello"]);
  }
});

test("an event's data looks as the table says", async (context) => {
  const url = await serve(context);
  const rows = [...(README.text.split(/^## In a browser\n/m)[1] ?? "").matchAll(/^\| (`[^`]+`|any other) \| .* \| `([^`]+)` \|$/gm)];
  const bodies: readonly [type: string, shown: string, body: string][] = [
    ["application/json", "`application/json`", '[{"k":1},2]'],
    ["text/plain", "`text/…`", "hello"],
    ["image/png", "any other", "hello"],
  ];
  assert.deepEqual(
    rows.map(([, type]) => type),
    bodies.map(([, shown]) => shown),
  );
  for (const [index, [type, , body]] of bodies.entries()) {
    const stream = `${url}${type}`;
    await fetch(stream, { method: "PUT", headers: { "Content-Type": type, "Stream-Closed": "true" }, body });
    const answer = await fetch(`${stream}?live=sse&offset=-1`);
    assert.equal(answer.headers.get("stream-sse-data-encoding"), type === "image/png" ? "base64" : null);
    const data = parseEventStream(await answer.text())[0]?.data ?? "";
    assert.equal(data, rows[index]?.[2]?.replaceAll("\\n", "\n"));
    if (type === "application/json") assert.deepEqual(JSON.parse(data), JSON.parse(body));
    if (type === "image/png") assert.equal(atob(data), body);
  }
});

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}

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
  const shown = (spec: OptionSpec): string => (spec.default === "" ? "" : `\`${formatValue(spec, spec.default)}\``);
  const rows = specs.map((spec) => `| \`--${spec.flag}\` | \`${spec.env}\` | ${shown(spec)} | ${spec.help} |`);
  const table = ["| flag | variable | default | what |", "|---|---|---|---|", ...rows].join("\n");
  README.assertTable("README.md", "options", table);
});
