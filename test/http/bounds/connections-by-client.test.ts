import assert from "node:assert/strict";
import { Socket } from "node:net";
import { describe, test } from "node:test";
import { Clients } from "../../../src/http/bounds/clients.js";
import { ConnectionsByClient } from "../../../src/http/bounds/connections-by-client.js";
import { keptLog } from "../../helpers/engine.js";

/** A connection from an address; `undefined` is one of a Unix socket. */
function from(remoteAddress: string | undefined): Socket {
  return Object.defineProperty(new Socket(), "remoteAddress", { value: remoteAddress });
}

describe("connections of a client", () => {
  const cases: readonly (readonly [what: string, addresses: readonly (string | undefined)[], admitted: readonly boolean[]])[] = [
    ["of one address are limited", ["192.0.2.1", "192.0.2.1", "192.0.2.1"], [true, true, false]],
    ["of others are counted by themselves", ["192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.2"], [true, true, true, true]],
    ["of an IPv6 client count by its /64", ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::3"], [true, true, false, true]],
    ["of an address in both of its forms are one's", ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"], [true, true, false]],
    ["of a trusted proxy are not limited", ["10.0.0.1", "10.0.0.1", "10.0.0.1"], [true, true, true]],
    ["of a Unix socket are not limited", [undefined, undefined, undefined], [true, true, true]],
  ];
  for (const [what, addresses, admitted] of cases) {
    test(what, () => {
      const connections = new ConnectionsByClient(2, new Clients("10.0.0.0/8", keptLog().log));
      assert.deepEqual(
        addresses.map((address) => connections.admit(from(address))),
        admitted,
      );
    });
  }

  test("are counted until they close, and leave nothing behind", () => {
    const connections = new ConnectionsByClient(1, new Clients("", keptLog().log));
    const first = from("192.0.2.1");
    assert.equal(connections.admit(first), true);
    assert.equal(connections.admit(from("192.0.2.1")), false);
    first.emit("close");
    assert.equal(connections.size, 0);
    assert.equal(connections.admit(from("192.0.2.1")), true);
  });

  test("are not counted without a limit", () => {
    const connections = new ConnectionsByClient(Infinity, new Clients("", keptLog().log));
    for (let count = 0; count < 100; count += 1) assert.equal(connections.admit(from("192.0.2.1")), true);
    assert.equal(connections.size, 0);
  });
});
