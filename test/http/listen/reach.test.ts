import assert from "node:assert/strict";
import { test } from "node:test";
import { isBeyond, isBeyondLoopback } from "../../../src/http/listen/reach.js";

test("an address is beyond loopback unless only this machine's programs reach it", () => {
  const at = (address: string) => ({ address, family: "", port: 1 });
  for (const near of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]) assert.equal(isBeyondLoopback(at(near)), false, near);
  assert.equal(isBeyondLoopback("/run/streamdir.sock"), false);
  for (const far of ["0.0.0.0", "::", "192.0.2.1", "fe80::1", "::ffff:10.0.0.1"]) assert.equal(isBeyondLoopback(at(far)), true, far);
  assert.equal(isBeyondLoopback(null), true);
});

test("a private network is within reach of --admin-listen, and nothing else is that routes", () => {
  const at = (address: string) => ({ address, family: "IPv4", port: 80 });
  for (const near of ["127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "fd00::1", "fe80::1"])
    assert.equal(isBeyond(at(near), "private"), false, near);
  for (const far of ["0.0.0.0", "::", "192.0.2.1", "172.32.0.1", "11.0.0.1", "2001:db8::1"])
    assert.equal(isBeyond(at(far), "private"), true, far);
  assert.equal(isBeyond(null, "private"), true);
  assert.equal(isBeyond(at("10.1.2.3"), "loopback"), true);
  assert.equal(isBeyond(at("0.0.0.0"), "everybody"), false);
});
