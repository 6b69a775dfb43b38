import assert from "node:assert/strict";
import { test } from "node:test";
import { beyondReach, planOf, wholePath, type ListenSettings } from "../../../src/http/listen/plan.js";
import { defaultSettings } from "../../../src/options.js";

function plan(settings: Partial<ListenSettings>): ReturnType<typeof planOf> {
  return planOf({ ...defaultSettings(), ...settings });
}

test("without listen, host and port say where to listen", () => {
  assert.deepEqual(plan({ host: "::1", port: 0 }), {
    addresses: [{ kind: "tcp", host: "::1", port: 0 }],
    unixMode: 0o600,
    reach: "loopback",
    tls: null,
  });
});

test("listen names all addresses, and host and port are left out", () => {
  const settings = { listen: "127.0.0.1:0,unix:/run/a.sock,fd:3", unixMode: "660" };
  assert.deepEqual(plan(settings), {
    addresses: [
      { kind: "tcp", host: "127.0.0.1", port: 0 },
      { kind: "unix", path: "/run/a.sock" },
      { kind: "fd", fd: 3 },
    ],
    unixMode: 0o660,
    reach: "loopback",
    tls: null,
  });
  for (const other of [{ host: "::1" }, { port: 0 }]) {
    const refused = plan({ ...settings, ...other });
    assert.match("fault" in refused ? refused.fault : "", /^--listen says where to listen instead of --host and --port/);
  }
});

test("a socket has its whole path, unless only the relative one is short enough", (context) => {
  const cwd = context.mock.method(process, "cwd", () => "/srv,1");
  const addressesOf = (listen: string): unknown => {
    const read = plan({ listen });
    return "fault" in read ? read.fault : read.addresses;
  };
  assert.deepEqual(addressesOf("unix:a.sock"), [{ kind: "unix", path: "/srv,1/a.sock" }]);
  cwd.mock.mockImplementation(() => `/${"long".repeat(30)}`);
  assert.deepEqual(addressesOf("unix:a.sock"), [{ kind: "unix", path: "a.sock" }]);
});

test("a server may be reached from beyond loopback when it knows who may do what, or when anybody may", () => {
  for (const settings of [{ auth: "/etc/auth.json" }, { insecure: true }]) {
    const allowed = plan(settings);
    assert.equal("fault" in allowed ? null : allowed.reach, "everybody");
  }
  assert.match(beyondReach({ kind: "tcp", host: "::", port: 80 }, "loopback"), /^Cannot listen on \[::\]:80: .*--auth.*--insecure/);
});

test("TLS needs a certificate and its key, and client certificates need TLS", () => {
  const whole = plan({ tlsCert: "c.pem", tlsKey: "k.pem" });
  assert.deepEqual("fault" in whole ? null : whole.tls, { cert: "c.pem", key: "k.pem", clientCa: null });
  const mutual = plan({ tlsCert: "c.pem", tlsKey: "k.pem", clientCa: "ca.pem" });
  assert.deepEqual("fault" in mutual ? null : mutual.tls, { cert: "c.pem", key: "k.pem", clientCa: "ca.pem" });
  for (const settings of [{ tlsCert: "c.pem" }, { tlsKey: "k.pem" }, { clientCa: "ca.pem" }]) {
    const refused = plan(settings);
    assert.match("fault" in refused ? refused.fault : "", /belong together|needs --tls-cert and --tls-key/);
  }
});

test("a path of a file is whole as the system would take it", (context) => {
  context.mock.method(process, "cwd", () => "/srv/app");
  for (const [path, whole] of [
    ["auth.json", "/srv/app/auth.json"],
    ["./tls/cert.pem", "/srv/app/tls/cert.pem"],
    ["current/../auth.json", "/srv/app/current/../auth.json"],
    ["/srv/app/current/../auth.json", "/srv/app/current/../auth.json"],
    ["/etc/auth.json", "/etc/auth.json"],
  ] as const)
    assert.equal(wholePath(path), whole);
});
