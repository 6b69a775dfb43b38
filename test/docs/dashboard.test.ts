import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

/*
 * docs/dashboard.json held against the model of a dashboard that Grafana documents (its "JSON model", and the options of
 * a time series). docs/metrics.test.ts has its queries.
 */

interface Source {
  readonly type: string;
  readonly uid: string;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly datasource: Source;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig: { readonly defaults: { readonly unit: string; readonly min: number }; readonly overrides: readonly unknown[] };
  readonly options: {
    readonly legend: { readonly displayMode: string; readonly placement: string };
    readonly tooltip: { readonly mode: string };
  };
  readonly targets: readonly {
    readonly refId: string;
    readonly datasource: Source;
    readonly expr: string;
    readonly legendFormat: string;
  }[];
}

interface Dashboard {
  readonly title: string;
  readonly uid: string;
  readonly schemaVersion: number;
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string; readonly query: string }[] };
  readonly panels: readonly Panel[];
}

const dashboard = JSON.parse(readFileSync(new URL("../../docs/dashboard.json", import.meta.url), "utf8")) as Dashboard; // tested here

/** Columns of Grafana's grid. */
const COLUMNS = 24;
/** By what a query measures, the id of its unit: of bytes, requests or bytes a second, seconds, parts of one, plain numbers. */
const UNITS: readonly (readonly [measures: RegExp, unit: string])[] = [
  [/_ratio\b|_limit_bytes\b|busy_seconds/, "percentunit"],
  [/rate\(streamdir_\w+_bytes_total/, "Bps"],
  [/(?:requests|refusals|connections_refused)_total/, "reqps"],
  [/_seconds(?:_bucket)?\b/, "s"],
  [/_bytes\b/, "bytes"],
  [/streams_|live_readers|batch_entries/, "short"],
];

test("the dashboard asks for its data source, and every panel and query is of that", () => {
  assert.deepEqual(
    dashboard.templating.list.map(({ name, type, query }) => [name, type, query]),
    [["datasource", "datasource", "prometheus"]],
  );
  const source = { type: "prometheus", uid: "${datasource}" };
  for (const { title, datasource, targets } of dashboard.panels)
    for (const named of [datasource, ...targets.map((target) => target.datasource)]) assert.deepEqual(named, source, title);
});

test("the dashboard has what an import needs, and its panels lie apart on the grid", () => {
  assert.ok(dashboard.title !== "" && /^[\w-]{1,40}$/.test(dashboard.uid) && Number.isInteger(dashboard.schemaVersion));
  const cells = new Set<string>();
  for (const { title, gridPos } of dashboard.panels) {
    const { x, y, w, h } = gridPos;
    assert.ok(x >= 0 && y >= 0 && w > 0 && h > 0 && x + w <= COLUMNS, title);
    for (let column = x; column < x + w; column += 1)
      for (let row = y; row < y + h; row += 1) {
        assert.ok(!cells.has(`${column} ${row}`), `${title} lies on another`);
        cells.add(`${column} ${row}`);
      }
  }
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
  assert.equal(new Set(dashboard.panels.map(({ title }) => title)).size, dashboard.panels.length);
});

for (const { title, type, fieldConfig, options, targets } of dashboard.panels)
  test(`the panel "${title}" is a time series in the unit of its queries, each line of which has a name`, () => {
    assert.equal(type, "timeseries");
    assert.ok(["list", "table", "hidden"].includes(options.legend.displayMode) && ["bottom", "right"].includes(options.legend.placement));
    assert.ok(["single", "multi", "none"].includes(options.tooltip.mode));
    assert.deepEqual(fieldConfig.overrides, []);
    assert.equal(fieldConfig.defaults.min, 0);
    assert.deepEqual(
      targets.map(({ refId }) => refId),
      targets.map((_, at) => String.fromCharCode(65 + at)),
    );
    for (const { expr, legendFormat } of targets) {
      const unit = UNITS.find(([measures]) => measures.test(expr))?.[1];
      assert.equal(fieldConfig.defaults.unit, unit, expr);
      assert.notEqual(legendFormat, "");
      // A legend by a label is of a label that the query keeps.
      const kept = /\bby \(([\w, ]+)\)/.exec(expr)?.[1]?.split(", ") ?? [];
      for (const [, label = ""] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) assert.ok(kept.includes(label), `${label} in ${expr}`);
      // What is split by a label says so, or its lines could not be told apart.
      for (const label of kept.filter((one) => one !== "le")) assert.ok(legendFormat.includes(`{{${label}}}`), expr);
      // A counter is shown as a rate, and a rate is of Grafana's own window.
      if (/_(?:total|bucket|sum|count)\b/.test(expr)) assert.match(expr, /rate\(\w+\[\$__rate_interval\]\)/);
    }
  });
