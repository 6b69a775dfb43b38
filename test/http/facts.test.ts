import assert from "node:assert/strict";
import { test } from "node:test";
import { startServer } from "../helpers/test-server.js";

const TEXT = { "Content-Type": "text/plain" };
const JSON_TYPE = { "Content-Type": "application/json" };

test("a refusal carries the one fact that its reader needs, to people and to programs", async (context) => {
  const server = await startServer(context);
  await server.send("PUT", "text", { headers: TEXT });
  await server.send("PUT", "json", { headers: JSON_TYPE });
  await server.send("PUT", "closed", { headers: { ...TEXT, "Stream-Closed": "true" }, body: "end" });
  const closedAt = new Date(server.clock.nowMs()).toISOString();
  const form = "application/x-www-form-urlencoded";
  const cases: readonly [method: string, name: string, headers: Record<string, string>, body: string, document: object][] = [
    [
      "POST",
      "json",
      JSON_TYPE,
      '{"a": 1,\n "b": }',
      { code: "invalid-json", detail: 'The body is not valid JSON: unexpected "}" at line 2, column 7.', line: 2, column: 7 },
    ],
    [
      "PUT",
      "new",
      JSON_TYPE,
      "[1",
      { code: "invalid-json", detail: "The body is not valid JSON: it ends at line 1, column 3.", line: 1, column: 3 },
    ],
    [
      "POST",
      "text",
      { "Content-Type": form },
      "x",
      {
        code: "content-type-mismatch",
        detail: `The stream's content type is text/plain, the request's is ${form}, which is curl's default: give it -H 'Content-Type: text/plain'.`,
        expected: "text/plain",
        received: form,
      },
    ],
    [
      "PUT",
      "text",
      { ...JSON_TYPE, "Stream-TTL": "5" },
      "",
      {
        code: "config-mismatch",
        detail: "The stream differs in Content-Type (text/plain there, application/json asked for), Stream-TTL (none there, 5 asked for).",
        differs: ["Content-Type", "Stream-TTL"],
      },
    ],
    ["POST", "closed", TEXT, "more", { code: "stream-closed", detail: `It was closed at ${closedAt}.`, closedAt }],
  ];
  for (const [method, name, headers, body, expected] of cases) {
    const { type, title, status, ...document } = JSON.parse((await server.send(method, name, { headers, body })).text);
    assert.deepEqual(document, expected);
    assert.ok(type !== "" && title !== "" && status >= 400);
  }
});

test("a closed stream says since when it is closed, after a restart too", async (context) => {
  const before = await startServer(context);
  await before.send("PUT", "a", { headers: TEXT, body: "x" });
  before.clock.advance(5000);
  const closedAt = new Date(before.clock.nowMs()).toISOString();
  await before.send("POST", "a", { headers: { "Stream-Closed": "true" } });
  before.clock.advance(5000);
  await before.send("POST", "a", { headers: { "Stream-Closed": "true" } });
  await before.stop();
  const server = await startServer(context, { dir: before.dir });
  assert.equal(JSON.parse((await server.send("POST", "a", { headers: TEXT, body: "y" })).text).closedAt, closedAt);
});
