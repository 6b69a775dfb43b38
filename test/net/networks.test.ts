import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { faultOfNetworks, parseNetworks } from "../../src/net/networks.js";

const CASES: readonly (readonly [list: string, has: readonly string[], hasNot: readonly string[]])[] = [
  ["", [], ["127.0.0.1", "::1", "192.0.2.7"]],
  ["192.0.2.7", ["192.0.2.7", "::ffff:192.0.2.7", "::FFFF:192.0.2.7", "::ffff:c000:207"], ["192.0.2.8", "::192.0.2.7"]],
  ["10.0.0.0/8", ["10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3"], ["9.255.255.255", "11.0.0.0", "::a01:203"]],
  ["10.9.8.7/8", ["10.0.0.1"], ["11.0.0.1"]],
  ["10.0.0.0/9", ["10.127.255.255"], ["10.128.0.0"]],
  ["10.0.0.0/31", ["10.0.0.1"], ["10.0.0.2"]],
  ["0.0.0.0/0", ["1.2.3.4"], ["::1", "2001:db8::1"]],
  ["2001:db8::/32", ["2001:db8::1", "2001:DB8:ffff::", "2001:db8:0:0:1::"], ["2001:db9::1", "32.1.13.184"]],
  ["2001:db8::/33", ["2001:db8:7fff::1"], ["2001:db8:8000::1"]],
  ["2001:db8::/52", ["2001:db8:0:0fff::1"], ["2001:db8:0:1000::1"]],
  ["2001:db8::5", ["2001:db8::5", "2001:db8:0:0:0:0:0:5", "2001:db8::5%eth0"], ["2001:db8::6"]],
  ["::ffff:10.0.0.0/104", ["10.1.2.3"], ["11.1.2.3"]],
  ["::/0", ["::1", "1.2.3.4"], []],
  ["loopback", ["127.0.0.1", "127.255.0.1", "::1", "::ffff:127.0.0.1"], ["128.0.0.1", "::2", "::127.0.0.1"]],
  [" 10.0.0.1 , loopback ", ["10.0.0.1", "127.0.0.1"], ["10.0.0.2"]],
  ["unix", [], ["127.0.0.1", ""]],
];

describe("a list of networks", () => {
  for (const [list, has, hasNot] of CASES) {
    test(JSON.stringify(list), () => {
      const networks = parseNetworks(list);
      assert.ok(networks !== null);
      assert.equal(faultOfNetworks(list), null);
      for (const address of has) assert.equal(networks.has(address), true, address);
      for (const address of [...hasNot, "", "unix", "localhost", "1.2.3", "::1::"]) assert.equal(networks.has(address), false, address);
    });
  }

  test("has Unix sockets only where it says so", () => {
    for (const list of ["", "loopback", "0.0.0.0/0,::/0"]) assert.equal(parseNetworks(list)?.hasUnixSockets, false, list);
    for (const list of ["unix", "loopback,unix", " unix"]) assert.equal(parseNetworks(list)?.hasUnixSockets, true, list);
  });

  test("is empty only when it is", () => {
    assert.equal(parseNetworks("")?.isEmpty, true);
    for (const list of ["unix", "10.0.0.1", "loopback"]) assert.equal(parseNetworks(list)?.isEmpty, false, list);
  });

  const faulty = [
    "localhost",
    "Loopback",
    "10.0.0.0/33",
    "10.0.0.0/",
    "10.0.0.0/-1",
    "10.0.0.0/8/8",
    "10.0.0",
    "10.0.0.256",
    "010.0.0.1",
    "2001:db8::/129",
    "[::1]",
    "fe80::1%eth0",
    "fe80::%eth0/64",
    "10.0.0.1,",
    ",10.0.0.1",
    "10.0.0.1 10.0.0.2",
    "unix/8",
    "unix:/run/a",
    "*",
    " ",
  ];
  for (const list of faulty) {
    test(`is refused: ${JSON.stringify(list)}`, () => {
      assert.equal(parseNetworks(list), null);
      assert.match(faultOfNetworks(list) ?? "", /^must be addresses or networks/);
    });
  }

  test("is a text", () => assert.match(faultOfNetworks(7) ?? "", /^must be/));
});
