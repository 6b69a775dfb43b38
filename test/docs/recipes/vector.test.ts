import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { PAGE_ORIGIN, servePage } from "../../helpers/page-examples.js";

const CONFIG = readFileSync(new URL("../../../docs/recipes/vector.yaml", import.meta.url), "utf8");

/** A setting of the sink, by its path; the file has one sink and no lists in it. */
function settingOf(path: string): string {
  const names: { readonly name: string; readonly indent: number }[] = [];
  for (const line of CONFIG.slice(CONFIG.indexOf("sinks:")).split("\n")) {
    const [, spaces = "", name = "", value = ""] = /^( *)([a-z_]+): *(.*)$/.exec(line) ?? [];
    if (name === "") continue;
    while ((names.at(-1)?.indent ?? -1) >= spaces.length) names.pop();
    names.push({ name, indent: spaces.length });
    if (names.map((part) => part.name).join(".") === `sinks.streamdir.${path}`) return value.replaceAll('"', "");
  }
  throw new Error(`vector.yaml has no ${path}`);
}

/** The body of a batch, as Vector's http sink makes it of events that are JSON, by its framing. */
function batchOf(events: readonly object[]): { type: string; body: string } {
  const lines = events.map((event) => JSON.stringify(event));
  const byComma = settingOf("framing.method") === "character_delimited" && settingOf("framing.character_delimited.delimiter") === ",";
  return byComma ? { type: "application/json", body: `[${lines.join(",")}]` } : { type: "application/x-ndjson", body: lines.join("\n") };
}

test("what Vector sends by this file becomes messages, one for each event", async (context) => {
  const url = new URL(await servePage(context));
  assert.deepEqual([settingOf("type"), settingOf("encoding.codec"), settingOf("compression")], ["http", "json", "none"]);
  const stream = settingOf("uri").replace(PAGE_ORIGIN, url.origin);
  // The command of the file's head.
  const [, type = "", created = ""] = /curl -X PUT -H 'Content-Type: ([^']+)' (\S+)/.exec(CONFIG) ?? [];
  assert.equal(created, settingOf("uri"));
  assert.equal((await fetch(stream, { method: "PUT", headers: { "Content-Type": type } })).status, 201);

  const events = Array.from({ length: 5 }, (_, index) => ({
    message: `GET /${index} "a, b"\n`,
    source_type: "file",
    timestamp: "2026-01-31T12:00:00.000000000Z",
  }));
  for (const batch of [events.slice(0, 3), events.slice(3)]) {
    const { type: contentType, body } = batchOf(batch);
    const answer = await fetch(stream, {
      method: settingOf("method").toUpperCase(),
      headers: { "Content-Type": contentType, "User-Agent": "Vector/0.50.0" },
      body,
    });
    assert.equal(answer.status, 204);
  }
  assert.deepEqual(await (await fetch(stream)).json(), events);
});

test("Vector's look at the server's health is answered as it wants it", async (context) => {
  const url = new URL(await servePage(context));
  const answer = await fetch(settingOf("healthcheck.uri").replace(PAGE_ORIGIN, url.origin), { method: "HEAD" });
  assert.equal(answer.status, 200);
});
