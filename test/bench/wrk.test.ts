import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { tempDir } from "../helpers/temp-dir.js";
import { appendTo, readOf } from "./rig.js";
import { hasProgram } from "./rivals/rival.js";
import { isForWrk, loadByWrk, scriptOf } from "./wrk.js";

const skip = hasProgram("wrk") ? false : "wrk is not installed";

test("a script has each request as it is sent, whatever its bytes", () => {
  const [first, second] = scriptOf([readOf("/a"), appendTo("/b", 'x"\\\n\xe9')])
    .split("\n")
    .slice(1, 3);
  assert.equal(first, '"GET /a HTTP/1.1\\013\\010Host: localhost\\013\\010Content-Length: 0\\013\\010\\013\\010",');
  assert.equal(
    second,
    '"POST /b HTTP/1.1\\013\\010Host: localhost\\013\\010Content-Type: text/plain\\013\\010Content-Length: 6\\013\\010\\013\\010x\\034\\092\\010\\195\\169"',
  );
});

test("what depends on what was sent before is not for wrk, nor are a few connections", { skip }, () => {
  const fixed = { kind: "fixed", requests: [] } as const;
  assert.equal(isForWrk({ traffic: fixed, connections: 64 }), true);
  assert.equal(isForWrk({ traffic: fixed, connections: 16 }), false);
  assert.equal(isForWrk({ traffic: { kind: "producers", prefix: "/p", bytes: 100 }, connections: 64 }), false);
});

/** What a server that refuses the path /no was asked, and what wrk says of it. */
async function asked(
  t: TestContext,
  ...paths: string[]
): Promise<{ readonly seen: ReadonlyMap<string, number>; readonly report: Awaited<ReturnType<typeof loadByWrk>> }> {
  const seen = new Map<string, number>();
  const server = createServer((req, res) => {
    const what = `${req.method} ${req.url} ${req.headers["content-length"]}`;
    seen.set(what, (seen.get(what) ?? 0) + 1);
    res.writeHead(req.url === "/no" ? 404 : 200, { "Content-Length": 2 });
    req.resume().on("end", () => res.end("ok"));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const ends: (() => Promise<void>)[] = [];
  t.after(async () => {
    for (const end of ends) await end();
    server.closeAllConnections();
    server.close();
  });
  const order = {
    port: (server.address() as AddressInfo).port,
    connections: 32,
    traffic: { kind: "fixed", requests: paths.map((path) => appendTo(path, 3)) },
    warmUpMs: 0,
    measureMs: 1000,
  } as const;
  const report = await loadByWrk({ after: (run) => void ends.push(run) }, join(tempDir(), "wrk"), order);
  return { seen, report };
}

test("wrk sends the requests in turn, and tells how it went", { skip }, async (t) => {
  const { seen, report } = await asked(t, "/a", "/b");
  const [a = 0, b = 0] = ["POST /a 3", "POST /b 3"].map((what) => seen.get(what));
  assert.equal(seen.size, 2);
  // Those on their way at the end may be missing.
  assert.ok(Math.abs(a - b) <= 33, `${a} and ${b}`);
  // Those that were on their way at the end are not counted.
  assert.ok(report.answers > 0 && report.answers <= a + b && report.answers >= a + b - 33, `${report.answers} of ${a + b}`);
  assert.deepEqual(report.refusals, {});
  assert.ok(report.p50Ms > 0 && report.p50Ms <= report.p99Ms);
  assert.equal(report.thousandthsMs.length, 1000);
  assert.deepEqual([report.thousandthsMs[499], report.thousandthsMs[989]], [report.p50Ms, report.p99Ms]);
  assert.ok(Math.abs(report.answerBytesPerSecond / report.requestsPerSecond - 140) < 40);
});

test("wrk tells of refusals", { skip }, async (t) => {
  const { report } = await asked(t, "/no");
  assert.deepEqual(report.refusals, { "400 or more": report.answers });
});
