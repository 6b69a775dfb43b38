import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { firstRequest } from "../../src/ops/first-request.js";

test("makes a stream, or reads where nothing may be made", () => {
  const url = "http://127.0.0.1:4437/v1/stream/";
  assert.equal(
    firstRequest(url, { readOnly: false, needsToken: false }),
    `curl -i -X PUT -H 'Content-Type: text/plain' --data hello ${url}hello`,
  );
  assert.equal(firstRequest(url, { readOnly: true, needsToken: false }), `curl ${url}`);
});

for (const url of ["http://[::1]:80/a/", "http://a/it's/$HOME/`id`/(a);&*!~/", "http://a/'/", "http://a/~b/"]) {
  test(`is one word for a shell: ${url}`, () => {
    const command = firstRequest(url, { readOnly: true, needsToken: false }).replace(/^curl/, "printf %s");
    assert.equal(execFileSync("sh", ["-c", command], { encoding: "utf8" }), url);
  });
}
