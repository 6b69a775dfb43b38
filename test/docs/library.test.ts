import assert from "node:assert/strict";
import test from "node:test";
import { createServer, type ServerOptions } from "../../src/server.js";
import { formatValue, OPTIONS, type OptionKind, type OptionSpec, type Settings } from "../../src/options.js";
import { Page, runExample } from "../helpers/page-examples.js";
import { tempDir } from "../helpers/temp-dir.js";

const PATH = "docs/library.md";
const PAGE = new Page(PATH);

const UNITS: Partial<Record<OptionKind, string>> = { bytes: "bytes", duration: "milliseconds" };

/** The options that no table of the code has; the type knows when one is missing. */
const PARTS: Record<Exclude<keyof ServerOptions, keyof Settings>, true> = {
  dir: true,
  forceUnlock: true,
  log: true,
  clock: true,
  accessOutput: true,
  onFault: true,
};

function typeOf({ kind, choices, undecided, default: value }: OptionSpec): string {
  if (undecided !== undefined) return `boolean, \`"${undecided}"\``;
  if (kind === "choice") return (choices ?? []).map((choice) => `\`"${choice}"\``).join(", ");
  return typeof value;
}

function rangeOf(spec: OptionSpec): string {
  if (spec.min === undefined || spec.max === undefined) return "";
  const range = `${formatValue(spec, spec.min)} to ${formatValue(spec, spec.max)}`;
  return spec.canBeOff === true ? `${range}, or \`Infinity\`` : range;
}

function defaultOf(spec: OptionSpec): string {
  const { default: value } = spec;
  const written = formatValue(spec, value);
  if (typeof value === "string") return `\`"${value}"\``;
  return written === String(value) || value === Infinity ? `\`${value}\`` : `\`${value}\` (${written})`;
}

test("the table of options is that of the code", () => {
  const specs: readonly (readonly [string, OptionSpec])[] = Object.entries(OPTIONS);
  const rows = specs.map(
    ([name, spec]) =>
      `| \`${name}\` | ${typeOf(spec)} | ${UNITS[spec.kind] ?? ""} | ${defaultOf(spec)} | ${rangeOf(spec)} | ${spec.help} |`,
  );
  PAGE.assertTable(PATH, "options", ["| option | type | unit | default | range | what |", "|---|---|---|---|---|---|", ...rows].join("\n"));
});

test("every other option has its row", () => {
  for (const name of Object.keys(PARTS)) assert.match(PAGE.text, new RegExp(`^\\| \`${name}\` \\|`, "m"));
});

test("the server example prints what it wrote", async (context) => {
  assert.equal(await runExample(context, PAGE.onlyBlock("createServer"), { at: "await server.close", before: "" }), "step 1 done\n\n");
});

test("the handler example serves streams beside pages, and asks for no body that it does not take", async (context) => {
  const use = `
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address();
    console.log(await (await fetch("http://127.0.0.1:" + port + "/other")).text());
    console.log((await fetch("http://127.0.0.1:" + port + "/streams/a", { method: "PUT" })).status);
    const metrics = await (await fetch("http://127.0.0.1:" + port + "/internal/metrics")).text();
    console.log(metrics.match(/^# TYPE streamdir_requests_total .*/m)[0]);
    const request = http.request({ port, method: "POST", path: "/streams/none", headers: { Expect: "100-continue", "Content-Length": 1, "Content-Type": "a/b" } });
    request.on("continue", () => console.log("go on"));
    request.flushHeaders();
    const [response] = await new Promise((resolve) => request.once("response", (...all) => resolve(all)));
    console.log(response.statusCode);
    request.destroy();
    server.closeIdleConnections();`;
  const example = PAGE.onlyBlock("createHandler");
  assert.equal(
    await runExample(context, example, { at: "// Later", before: use }),
    "not one of mine\n\n201\n# TYPE streamdir_requests_total counter\n404\n",
  );
});

test("the log of the example is the one that is written to", async (context) => {
  const printed = await runExample(context, PAGE.onlyBlock("The log"), {
    at: "await server.close",
    before: 'log.info("serving", { port: server.port });',
  });
  assert.match(printed, /^info serving 1$/m);
});

test("a wrong start is refused with a code of the page", async () => {
  await assert.rejects(createServer({ dir: tempDir(), port: -1 }), { code: "invalid-option" });
  await assert.rejects(createServer({ dir: "/dev/null/x", port: 0 }), { code: "directory-unusable" });
  await assert.rejects(createServer({ dir: tempDir(), port: 0, host: "192.0.2.1" }), { code: "port-unusable" });
  for (const code of ["invalid-option", "directory-unusable", "port-unusable"])
    assert.match(PAGE.text, new RegExp(`^\\| \`${code}\``, "m"));
});

test("the diagnostics example prints the batch of its create", async (context) => {
  const printed = await runExample(context, PAGE.onlyBlock("Diagnostics"), { at: "await server.close", before: "" });
  assert.match(printed, /^batch 1 true true$/m);
});
