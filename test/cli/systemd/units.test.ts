import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { serviceUnit, socketUnit, type UnitsPlan } from "../../../src/cli/systemd/units.js";
import { defaultSettings, type Settings } from "../../../src/options.js";
import { unless } from "../../helpers/machine.js";
import { startProgram, startStreamdir, type TestScope } from "../../helpers/process.js";
import { ask } from "../../helpers/real-server.js";
import { tempDir } from "../../helpers/temp-dir.js";

const lacksAnalyze = unless(["systemd-analyze", "--version"], "run systemd-analyze (the package systemd)");
/** `--threshold` takes ten times the exposure that is printed. */
const MOST_EXPOSURE = 15;

function planOf(settings: Partial<Settings> = {}, more: Partial<UnitsPlan> = {}): UnitsPlan {
  return {
    settings: { ...defaultSettings(), ...settings },
    node: process.execPath,
    // Any program that is there: verify looks whether it is.
    command: "/bin/sh",
    user: null,
    directory: { kind: "state", name: "streamdir" },
    addresses: [{ kind: "tcp", host: "127.0.0.1", port: 4437 }],
    ...more,
  };
}

const PLANS = {
  "of the defaults": planOf(),
  "with files that only root reads": planOf({
    auth: "/etc/streamdir/auth.json",
    tlsCert: "/etc/a b/cert.pem",
    tlsKey: "/etc/100%/key.pem",
    clientCa: "/etc/ca.pem",
  }),
  "for a user with a directory of its own": planOf({}, { user: "daemon", directory: { kind: "path", path: "/srv/my streams" } }),
  "with values that need quotes": planOf({ prefix: "/$a%b/", readOnly: true, shutdownTimeoutMs: 1500 }),
  "with several addresses": planOf(
    { unixMode: "660" },
    {
      user: "daemon",
      addresses: [
        { kind: "tcp", host: "::1", port: 4437 },
        { kind: "tcp", host: "fe80::1%lo", port: 4437 },
        { kind: "unix", path: "/run/streamdir/100%.sock" },
      ],
    },
  ),
  "of a cluster": planOf(
    { storage: "nats://10.0.0.1,10.0.0.2/chats", natsCreds: "/etc/streamdir/nats.creds" },
    { directory: { kind: "none" } },
  ),
  "of a cluster with a password": planOf({ storage: "nats://me:secret@10.0.0.1/chats" }, { directory: { kind: "none" } }),
} satisfies Readonly<Record<string, UnitsPlan>>;

/** The values of a setting of a unit, continued lines joined. */
function valuesOf(unit: string, setting: string): string[] {
  const lines = unit.replaceAll(" \\\n  ", " ").split("\n");
  return lines.flatMap((line) => (line.startsWith(`${setting}=`) ? [line.slice(setting.length + 1)] : []));
}

describe("units for systemd", () => {
  for (const [title, plan] of Object.entries(PLANS)) {
    test(`${title} pass systemd-analyze, hardened`, { skip: lacksAnalyze }, async (t) => {
      const dir = tempDir();
      const service = join(dir, "streamdir.service");
      writeFileSync(service, serviceUnit(plan));
      writeFileSync(join(dir, "streamdir.socket"), socketUnit(plan));
      const verified = await startProgram(t, "systemd-analyze", ["verify", "--man=no", service, join(dir, "streamdir.socket")]).ended;
      assert.deepEqual([verified.status, verified.stdout, verified.stderr], [0, "", ""]);
      const judged = await startProgram(t, "systemd-analyze", [
        "security",
        "--no-pager",
        "--offline=true",
        `--threshold=${MOST_EXPOSURE}`,
        service,
      ]).ended;
      assert.equal(judged.status, 0, judged.stdout);
      assert.match(judged.stdout, /Overall exposure level for streamdir\.service: (?:0\.\d|1\.[0-5]) /);
    });
  }

  test("have every option that is not at its default, as the command reads it", () => {
    const [start = ""] = valuesOf(serviceUnit(PLANS["with values that need quotes"]), "ExecStart");
    assert.match(start, / serve %S\/streamdir /);
    assert.ok(start.includes(' "--prefix=/$$a%%b/"'));
    assert.ok(start.endsWith(" --read-only --shutdown-delay=1s --shutdown-timeout=1500ms"), start);
  });

  test("name no file that is a credential, but its copy", () => {
    const unit = serviceUnit(PLANS["with files that only root reads"]);
    assert.deepEqual(valuesOf(unit, "LoadCredential"), [
      "auth.json:/etc/streamdir/auth.json",
      "tls-cert.pem:/etc/a b/cert.pem",
      "tls-key.pem:/etc/100%%/key.pem",
      "client-ca.pem:/etc/ca.pem",
    ]);
    const [start = ""] = valuesOf(unit, "ExecStart");
    assert.ok(start.includes(" --auth=%d/auth.json --tls-cert=%d/tls-cert.pem --tls-key=%d/tls-key.pem --client-ca=%d/client-ca.pem"));
    assert.deepEqual(valuesOf(unit, "ExecReload"), ["/bin/kill -HUP $MAINPID"]);
    assert.deepEqual(valuesOf(serviceUnit(planOf()), "ExecReload"), []);
  });

  test("keep nothing of a cluster's streams, and sign in with a copy of the creds file", () => {
    const unit = serviceUnit(PLANS["of a cluster"]);
    const [start = ""] = valuesOf(unit, "ExecStart");
    assert.match(start, / serve --shutdown-delay=1s --storage=nats:\/\/10\.0\.0\.1,10\.0\.0\.2\/chats --nats-creds=%d\/nats\.creds$/);
    assert.deepEqual(valuesOf(unit, "LoadCredential"), ["nats.creds:/etc/streamdir/nats.creds"]);
    for (const absent of ["StateDirectory", "ReadWritePaths", "EnvironmentFile"]) assert.deepEqual(valuesOf(unit, absent), []);
  });

  test("try a start again until it is not refused, as while a backup has the directory", () => {
    for (const plan of Object.values(PLANS)) {
      const unit = serviceUnit(plan);
      assert.deepEqual([valuesOf(unit, "RestartSec"), valuesOf(unit, "StartLimitIntervalSec")], [["5"], ["0"]]);
      // It has no meaning in another section.
      assert.ok(unit.indexOf("StartLimitIntervalSec=") < unit.indexOf("[Service]"));
    }
  });

  test("have no password, but the name of a file that has it", () => {
    const unit = serviceUnit(PLANS["of a cluster with a password"]);
    assert.ok(!unit.includes("secret") && !unit.includes("--storage"), unit);
    assert.deepEqual(valuesOf(unit, "EnvironmentFile"), ["/etc/streamdir/%p.env"]);
  });

  test("leave home readable for a Node, or a directory, that lives there", () => {
    const directory = { kind: "path", path: "/home/me/streams" } as const;
    for (const more of [{ node: "/home/me/.nvm/node" }, { user: "me", directory }])
      assert.deepEqual(valuesOf(serviceUnit(planOf({}, more)), "ProtectHome"), ["read-only"]);
    assert.deepEqual(valuesOf(serviceUnit(planOf()), "ProtectHome"), ["yes"]);
  });

  test("have each address in the socket alone", () => {
    const unit = socketUnit(PLANS["with several addresses"]);
    assert.deepEqual(valuesOf(unit, "ListenStream"), ["[::1]:4437", "[fe80::1]:4437%%lo", "/run/streamdir/100%%.sock"]);
    assert.deepEqual([valuesOf(unit, "SocketMode"), valuesOf(unit, "SocketUser")], [["0660"], ["daemon"]]);
    assert.deepEqual(valuesOf(socketUnit(planOf()), "SocketMode"), []);
    const addresses = [{ kind: "unix", path: "/run/s" }] as const;
    assert.match(socketUnit(planOf({ unixMode: "660" }, { addresses })), /\nSocketMode=0660\n# The group .*\n#SocketGroup=\n/);
    assert.ok(!socketUnit(planOf({}, { addresses })).includes("SocketGroup"));
  });

  test("let the server call what it calls", { skip: lacksAnalyze || unless(["strace", "true"], "trace (strace)") }, async (t) => {
    const called = await systemCallsOfServer(t);
    const allowed = allowedCalls();
    const refused = [...called].filter((name) => !allowed.has(name));
    assert.ok(called.has("fdatasync") && called.has("accept4") && called.size > 30, [...called].join(" "));
    assert.deepEqual(refused, []);
  });
});

/** The system calls of a server from its start to its end, with a stream made, written, read live, and deleted. */
async function systemCallsOfServer(scope: TestScope): Promise<ReadonlySet<string>> {
  const summary = join(tempDir(), "calls");
  const server = startStreamdir(scope, ["serve", tempDir(), "--port=0", "--log-format=json", "--segment-bytes=64KiB"], {
    under: ["strace", "-D", "-f", "-c", "-o", summary],
  });
  const { url } = JSON.parse(await server.stdoutLine(/"serving"/));
  const headers = { "Content-Type": "text/plain" };
  await ask(`${url}s`, "PUT", { headers });
  for (let size = 1; size < 100_000; size *= 10) await ask(`${url}s`, "POST", { headers, body: "x".repeat(size) });
  assert.equal((await ask(`${url}s?offset=-1`, "GET")).body.length, 11_111);
  await ask(`${url}s`, "DELETE");
  server.kill("SIGTERM");
  await server.ended;
  const names = readFileSync(summary, "utf8").matchAll(/^ *[\d.]+ .* ([a-z]\w+)$/gm);
  return new Set([...names].map(([, name = ""]) => name).filter((name) => name !== "total"));
}

/** What the filter of the units lets through. */
function allowedCalls(): ReadonlySet<string> {
  const filters = new Map<string, string[]>();
  let filter: string[] = [];
  for (const line of execFileSync("systemd-analyze", ["syscall-filter", "--no-pager"], { encoding: "utf8" }).split("\n")) {
    if (line.startsWith("@")) filters.set(line.trim(), (filter = []));
    else if (/^ +[@a-z]/.test(line)) filter.push(line.trim());
  }
  const callsOf = (name: string): string[] => (name.startsWith("@") ? (filters.get(name) ?? []).flatMap(callsOf) : [name]);
  const [allowing = "", refusing = ""] = valuesOf(serviceUnit(planOf()), "SystemCallFilter");
  assert.match(refusing, /^~/);
  const refused = new Set(refusing.slice(1).split(" ").flatMap(callsOf));
  return new Set(
    allowing
      .split(" ")
      .flatMap(callsOf)
      .filter((name) => !refused.has(name)),
  );
}
