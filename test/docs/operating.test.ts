import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { describe, test } from "node:test";
import { EXIT } from "../../src/cli/command/verb.js";
import { PROBLEMS } from "../../src/http/encoding/problems.js";
import { OPTIONS } from "../../src/options.js";
import { Page } from "../helpers/page-examples.js";
import { isSaid, loggedTexts, sourceTexts } from "./source-texts.js";

const PAGE = new Page("docs/operating.md").text;
const SERVE = ["src/cli/serve.ts", "src/cli/command/stop-signals.ts"].map((file) => readFileSync(file, "utf8")).join("\n");
const METRICS = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");
const SYMPTOMS = PAGE.slice(PAGE.indexOf("\n## When something is wrong\n"));

function tableOf(name: string): string[][] {
  const [, table = ""] = new RegExp(`<!-- ${name}:begin -->\n([\\s\\S]*?)<!-- ${name}:end -->`).exec(PAGE) ?? [];
  const rows = table.split("\n").filter((line) => line.startsWith("| "));
  return rows.slice(1).map((line) => line.split(" | ").map((cell) => cell.replaceAll(/^\| | \|$/g, "").trim()));
}

describe("docs/operating.md", () => {
  test("has every exit status of the command, and no other", () => {
    const described = tableOf("exits").flatMap(([status = ""]) => status.split(", ").map(Number));
    const ofSecondSignal = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"] as const;
    // docs/cli.md has those of the verbs for a server.
    const { refused, missing, unreachable, tryAgain, noRight, ...ofServer } = EXIT;
    const ofVerbs = new Page("docs/cli.md").text;
    for (const status of [refused, missing, unreachable, tryAgain, noRight])
      assert.ok(ofVerbs.includes(`| ${status} | \`EX_`), String(status));
    // V8 aborts where its heap is full; the kernel kills.
    const ofOthers = [constants.signals.SIGABRT, constants.signals.SIGKILL];
    const ofSignals = [...ofSecondSignal.map((signal) => constants.signals[signal]), ...ofOthers];
    const expected = [...Object.values(ofServer), ...ofSignals.map((signal) => 128 + signal)];
    assert.deepEqual(described.sort(), expected.sort());
    for (const status of ofSecondSignal.map((signal) => 128 + constants.signals[signal])) assert.ok(SERVE.includes(String(status)));
  });

  test("has every signal that the command handles", () => {
    const [, section = ""] = PAGE.split("## Signals and exit statuses");
    const named = new Set(SERVE.match(/\bSIG[A-Z0-9]+\b/g));
    assert.ok(named.size > 10);
    for (const signal of named) assert.ok(section.includes(signal), signal);
  });

  test("has every alert of docs/metrics.md", () => {
    const alerts = [...METRICS.matchAll(/- alert: (\w+)/g)].map(([, alert]) => alert);
    assert.deepEqual(
      tableOf("alerts").map(([alert = ""]) => alert.replaceAll("`", "")),
      alerts,
    );
  });

  test("names only flags that there are", () => {
    const flags = new Set<string>([
      ...Object.values(OPTIONS).map(({ flag }) => flag),
      "force-unlock",
      "dry-run",
      "yes",
      "user",
      "from",
      "resume",
      "state",
      // of Node
      "max-old-space-size",
      "auth",
      "only",
    ]);
    const outside = PAGE.replaceAll(/```[\s\S]*?```/g, "");
    for (const [, flag = ""] of outside.matchAll(/`(?:streamdir [\w ]+)?--([a-z-]+)/g)) assert.ok(flags.has(flag), flag);
  });

  test("says of each log line and each line of standard error what a source says", () => {
    const texts = sourceTexts();
    const cells = [...SYMPTOMS.matchAll(/^\| `([^`]+)` \|/gm)].map(([, line = ""]) => line);
    const prose = SYMPTOMS.replaceAll(/```[\s\S]*?```/g, "");
    const quotes = [...prose.matchAll(/`([^`]+)`/g)]
      .map(([, quoted = ""]) => quoted)
      .filter((quoted) => / \w+ /.test(quoted) && !/^(streamdir|chown|chmod|iostat|ss|ulimit|journalctl|GET) |=/.test(quoted))
      // V8 says this one.
      .filter((quoted) => quoted !== "FATAL ERROR: … JavaScript heap out of memory");
    const shown = [...PAGE.matchAll(/^streamdir: (.*)$/gm)].map(([, line = ""]) => line);
    const lines = new Set([...cells, ...quotes, ...shown]);
    assert.ok(lines.size > 25, `${lines.size} lines`);
    assert.deepEqual(
      [...lines].filter((line) => !isSaid(line.replace(/^exiting: /, ""), texts)),
      [],
    );
  });

  test("has every warning and error of the log", () => {
    const { texts, elsewhere } = loggedTexts((path) => path.startsWith("storage/nats/"));
    assert.ok(texts.length > 30, `${texts.length} texts`);
    const pages = SYMPTOMS + new Page("docs/cluster.md").text;
    const isThere = (text: string): boolean => text.split("…").every((piece) => pages.includes(piece.trim()));
    assert.deepEqual(
      texts.filter((text) => !isThere(text)),
      [],
    );
    // Not held to the page: several places make these texts, and hand them to the one that logs.
    assert.deepEqual([...elsewhere].sort(), [
      "auth/authority.ts: message",
      "auth/authority.ts: message",
      "http/listen/tls-door.ts: lines[warning]",
      "http/listen/tls-door.ts: message",
      "server/caller-hooks.ts: message",
    ]);
  });

  test("has problems with their status", () => {
    const named = [...PAGE.matchAll(/\b([45]\d\d) `([\w-]+)`/g)];
    assert.ok(named.length > 8);
    for (const [, status, code = ""] of named) {
      assert.ok(Object.hasOwn(PROBLEMS, code), code);
      assert.equal(new Map(Object.entries(PROBLEMS)).get(code)?.status, Number(status), code);
    }
  });

  test("what is no text of the program is found", () => {
    const texts = ["the disk is full: …", "an upgrade of … was cut short"];
    for (const said of ["the disk is full: now", "an upgrade of /a was cut short", "the disk is full"])
      assert.ok(isSaid(said, texts), said);
    for (const other of ["the disk is empty: now", "an upgrade of /a was done", "…"]) assert.ok(!isSaid(other, texts), other);
  });
});
