import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { PROBLEMS } from "../../src/http/encoding/problems.js";
import { REQUEST_KINDS } from "../../src/metrics/request-figures.js";
import { startServer } from "../helpers/test-server.js";
import { tempDir } from "../helpers/temp-dir.js";

const page = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");
/** Those that a server on a directory does not have; test/nats/permissions.test.ts reads them from one on a cluster. */
const OF_CLUSTERS = "streamdir_cluster_";
const ROW = /^\| `(\w+)` \| (\w+) \|/gm;
const rules = /```yaml\n(groups:[\s\S]*?)```/.exec(page)?.[1] ?? "";
const promtool = spawnSync("promtool", ["--version"]);
const skip = promtool.error === undefined ? false : "promtool is not installed (Debian's package prometheus)";

/** Rules on a failing disk and a crowd of clients: each alert that these figures must set off, and none beside. */
const RULE_TEST = `rule_files: [alerts.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: streamdir_storage_writable
        values: "1 1 0x10"
      - series: streamdir_refusals_total{code="storage-full"}
        values: "0 0 0 5x10"
      - series: streamdir_connections_refused_total{limit="all"}
        values: "0+60x12"
      - series: streamdir_connections_refused_total{limit="client"}
        values: "0+600x12"
      - series: up{job="streamdir"}
        values: "1x12"
    alert_rule_test:
      - eval_time: 1m
        alertname: StreamdirNotWritable
      - eval_time: 4m
        alertname: StreamdirNotWritable
        exp_alerts: [{ exp_labels: { severity: page }, exp_annotations: { summary: "Writes are refused, all or only large ones; GET /health has the reason, docs/durability.md what to do." } }]
      - eval_time: 4m
        alertname: StreamdirDown
      - eval_time: 4m
        alertname: StreamdirDiskFull
        exp_alerts: [{ exp_labels: { severity: page, code: storage-full }, exp_annotations: { summary: "Appends are answered 507, all or only large ones; make room, the server goes on by itself." } }]
      - eval_time: 4m
        alertname: StreamdirOverloaded
      - eval_time: 10m
        alertname: StreamdirOverloaded
        exp_alerts: [{ exp_labels: { severity: page, limit: all }, exp_annotations: { summary: "Requests are answered 503 overloaded, or connections turned away; docs/operating.md has what to look at, live readers first." } }]
`;

describe("docs/metrics.md", () => {
  test("has a row for every metric of a server, with its type, and no other", async (context) => {
    const server = await startServer(context);
    const { text } = await server.send("GET", "/metrics");
    const served = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`);
    const described = [...page.matchAll(ROW)].map(([, name, type]) => `${name} ${type}`).filter((row) => !row.startsWith(OF_CLUSTERS));
    assert.deepEqual([...described].sort(), [...served].sort());
  });

  test("names every operation", () => {
    for (const kind of REQUEST_KINDS) assert.ok(page.includes(`\`${kind}\``), kind);
  });

  test("has ten alerts, on metrics and codes that there are", () => {
    assert.equal([...rules.matchAll(/- alert: /g)].length, 10);
    const named = new Set([...page.matchAll(ROW)].map(([, name = ""]) => name));
    for (const [used] of rules.matchAll(/\b(?:streamdir|process)_\w+/g)) assert.ok(named.has(used.replace(/_bucket$/, "")), used);
    for (const [, code = ""] of rules.matchAll(/code="([\w-]+)"/g)) assert.ok(Object.hasOwn(PROBLEMS, code), code);
  });

  test("has alerts that promtool accepts, and that a full disk and too many connections set off", { skip }, () => {
    const dir = tempDir();
    writeFileSync(join(dir, "alerts.yml"), rules);
    writeFileSync(join(dir, "test.yml"), RULE_TEST);
    for (const args of [
      ["check", "rules", "alerts.yml"],
      ["test", "rules", "test.yml"],
    ]) {
      const { status, stdout, stderr } = spawnSync("promtool", args, { cwd: dir });
      assert.equal(status, 0, `${args.join(" ")}: ${stdout.toString()}${stderr.toString()}`);
    }
  });

  test("has a dashboard, of metrics that there are and queries that promtool can read", () => {
    const text = readFileSync(new URL("../../docs/dashboard.json", import.meta.url), "utf8");
    const { panels } = JSON.parse(text) as { panels: { title: string; targets: { expr: string }[] }[] }; // as Grafana has it
    const named = new Set([...page.matchAll(ROW)].map(([, name = ""]) => name));
    const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    assert.equal(panels.length, 12);
    for (const query of queries)
      for (const [used] of query.matchAll(/\b(?:streamdir|process|nodejs)_\w+/g))
        assert.ok(named.has(used) || named.has(used.replace(/_(bucket|sum|count)$/, "")), used);
    if (skip !== false) return;
    const dir = tempDir();
    const recorded = queries.map((query, at) => ({ record: `panel:${at}`, expr: query.replaceAll("$__rate_interval", "1m") }));
    writeFileSync(join(dir, "queries.yml"), JSON.stringify({ groups: [{ name: "dashboard", rules: recorded }] }));
    const { status, stderr } = spawnSync("promtool", ["check", "rules", "queries.yml"], { cwd: dir });
    assert.equal(status, 0, stderr.toString());
  });
});
