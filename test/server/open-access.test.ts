import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultSettings, type Settings } from "../../src/options.js";
import { createServer } from "../../src/server.js";
import { warnOfOpenAccess } from "../../src/server/open-access.js";
import { tempDir } from "../helpers/temp-dir.js";

const WARNING = "whoever a proxy lets in may use every stream: give --auth, or --insecure where the proxy asks who they are";

/** A log, and the warnings that it got. */
function logged() {
  const warnings: string[] = [];
  return { warnings, log: { debug() {}, info() {}, warn: (line: string) => void warnings.push(line), error() {} } };
}

const IDLE = "client certificates give no rights without --auth, and clients without one have all";

const rows: readonly [who: string, settings: Partial<Settings>, isWarned: boolean][] = [
  ["nobody behind a proxy", {}, false],
  ["a trusted proxy", { trustProxy: "loopback" }, true],
  ["another name", { allowHost: "streams.example.com" }, true],
  ["a proxy that passes on who has a certificate", { trustProxy: "loopback", clientCa: "ca.pem" }, true],
  ["a trusted proxy, with auth", { trustProxy: "loopback", allowHost: "streams.example.com", auth: "auth.json" }, false],
  ["a trusted proxy, on purpose", { trustProxy: "loopback", allowHost: "streams.example.com", insecure: true }, false],
];
for (const [who, settings, isWarned] of rows)
  test(`${isWarned ? "a" : "no"} warning of open access: ${who}`, () => {
    const { log, warnings } = logged();
    warnOfOpenAccess({ ...defaultSettings(), ...settings }, log);
    assert.deepEqual(warnings, [...(settings.clientCa === undefined ? [] : [IDLE]), ...(isWarned ? [WARNING] : [])]);
  });

test("certificates that nobody needs are warned of, where they look as if they kept others out", () => {
  for (const [settings, expected] of [
    [{ insecure: true, clientCa: "ca.pem" }, [IDLE]],
    [{ auth: "auth.json", clientCa: "ca.pem" }, []],
  ] as const) {
    const { log, warnings } = logged();
    warnOfOpenAccess({ ...defaultSettings(), ...settings }, log);
    assert.deepEqual(warnings, expected);
  }
});

test("a server that starts behind a proxy without auth warns of it once", async () => {
  const { log, warnings } = logged();
  const server = await createServer({ dir: tempDir(), port: 0, log, trustProxy: "loopback" });
  await server.close();
  assert.deepEqual(warnings, [WARNING]);
});
