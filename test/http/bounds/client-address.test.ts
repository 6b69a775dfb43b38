import assert from "node:assert/strict";
import { test } from "node:test";
import { clientAddressOf } from "../../../src/http/bounds/client-address.js";

const cases: readonly (readonly [remoteAddress: string | undefined, client: string])[] = [
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"],
  ["2001:db8:1:2::6", "2001:db8:1:2::"],
  ["2001:db8::3:4:5:6", "2001:db8:0:0::"],
  ["2001:db8::1", "2001:db8:0:0::"],
  ["::1", "0:0:0:0::"],
  ["::", "0:0:0:0::"],
  ["1::2:3:4:5:6:7", "1:0:2:3::"],
  ["64:ff9b::c000:207", "192.0.2.7"],
  ["64:ff9b::7", "0.0.0.7"],
  ["64:ff9b:1::c000:207", "64:ff9b:1:0::"],
  ["2002:c000:207::1", "192.0.2.7"],
  ["2002:c000:207:ffff:1:2:3:4", "192.0.2.7"],
  ["2002::1", "0.0.0.0"],
  ["2003:c000:207::1", "2003:c000:207:0::"],
  ["fe80::1%eth0", "fe80:0:0:0::"],
  [undefined, ""],
];

for (const [remoteAddress, client] of cases) {
  test(`a connection from ${remoteAddress ?? "a Unix socket"} counts for ${JSON.stringify(client)}`, () => {
    assert.equal(clientAddressOf({ remoteAddress }), client);
  });
}
