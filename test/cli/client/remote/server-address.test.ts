import assert from "node:assert/strict";
import test from "node:test";
import { formatServer, hasPath, parseServer, type ServerAddress } from "../../../../src/cli/client/remote/server-address.js";

const LOCAL: ServerAddress = { isSecure: false, host: "127.0.0.1", port: 4437, socketPath: null, prefix: "/v1/stream/", isPrivate: true };

for (const [text, prefix, address] of [
  ["http://127.0.0.1:4437", null, {}],
  ["http://127.0.0.1:4437/", null, {}],
  ["http://127.0.0.1:4437/v1/stream", null, {}],
  ["http://127.0.0.1:4437/a/b/", null, { prefix: "/a/b/" }],
  ["http://127.0.0.1:4437/a/", "/c/", { prefix: "/c/" }],
  ["http://[::1]:80/", null, { host: "::1", port: 80 }],
  ["http://[fe80::1%25br-lan]:4437/", null, { host: "fe80::1%br-lan", isPrivate: false }],
  ["https://a.example", null, { isSecure: true, host: "a.example", port: 443 }],
  ["http://a.example", null, { host: "a.example", port: 80, isPrivate: false }],
  ["unix:/run/a,b.sock", null, { host: "localhost", port: 80, socketPath: "/run/a,b.sock" }],
  ["unix:s", "/p/", { host: "localhost", port: 80, socketPath: "s", prefix: "/p/" }],
] as const)
  test(`${text} ${prefix ?? ""} is an address`, () => assert.deepEqual(parseServer(text, prefix), { ...LOCAL, ...address }));

const A_PREFIX = "a prefix that begins and ends with /, like /v1/stream/";
for (const [text, prefix, fault] of [
  ["", null, '--server must be a URL like http://127.0.0.1:4437, or unix:PATH, not ""'],
  ["127.0.0.1:4437", null, '--server must be a URL like http://127.0.0.1:4437, or unix:PATH, not "127.0.0.1:4437"'],
  ["unix:", null, '--server must be a URL like http://127.0.0.1:4437, or unix:PATH, not "unix:"'],
  ["http://", null, '--server must be a URL, not "http://"'],
  ["http://a:secret@b/", null, "--server must have no name and no password: see --token-file"],
  ["http://a:secret@b:99999", null, "--server must be a URL"],
  ["a:secret@b", null, "--server must be a URL like http://127.0.0.1:4437, or unix:PATH"],
  ["http://a/?ticket=1", null, '--server must have no ? and no #, not "http://a/?ticket=1"'],
  ["http://a/%20/", null, `--server must have ${A_PREFIX}, not "http://a/%20/"`],
  ["http://a/", "v1", `--prefix must be ${A_PREFIX}, not "v1"`],
  ["unix:s", "v1/", `--prefix must be ${A_PREFIX}, not "v1/"`],
] as const)
  test(`${JSON.stringify(text)} ${prefix ?? ""} is none`, () => assert.deepEqual(parseServer(text, prefix), { fault }));

test("an address has a prefix of its own where it is a URL with a path", () => {
  for (const text of ["http://a/b", "https://a/b/", "http://[::1]:80/v1/stream/", "http://[fe80::1%25e]/a/"])
    assert.equal(hasPath(text), true, text);
  for (const text of ["http://a", "http://a/", "unix:/run/s", "a/b", "http://"]) assert.equal(hasPath(text), false, text);
});

test("a fault names the variable that the address comes from", () => {
  const called = { server: "STREAMDIR_URL", prefix: "STREAMDIR_PREFIX" };
  for (const [text, prefix, fault] of [
    ["http://", null, 'STREAMDIR_URL must be a URL, not "http://"'],
    ["http://a:secret@b/", null, "STREAMDIR_URL must have no name and no password: see --token-file"],
    ["http://a/", "v1", `STREAMDIR_PREFIX must be ${A_PREFIX}, not "v1"`],
    ["unix:s", "v1", `STREAMDIR_PREFIX must be ${A_PREFIX}, not "v1"`],
  ] as const)
    assert.deepEqual(parseServer(text, prefix, called), { fault });
});

test("an address is written as it is given", () => {
  for (const text of ["http://127.0.0.1:4437", "https://[::1]:8443", "http://[fe80::1%25eth0.1]:4437", "unix:/run/s"]) {
    const address = parseServer(text, null);
    assert.ok(!("fault" in address));
    assert.equal(formatServer(address), text);
  }
});
