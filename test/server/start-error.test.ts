import assert from "node:assert/strict";
import { test } from "node:test";
import { ListenError } from "../../src/http/listen/listener.js";
import type { ListenAddress } from "../../src/net/listen-address.js";
import { listenFault } from "../../src/server/start-error.js";

const TCP: ListenAddress = { kind: "tcp", host: "127.0.0.1", port: 80 };
const UNIX: ListenAddress = { kind: "unix", path: "/run/a.sock" };

const faults: readonly [ListenAddress, code: string, message: string][] = [
  [TCP, "EACCES", "Cannot listen on 127.0.0.1 port 80: this user may not use the port"],
  [TCP, "EMFILE", "Cannot listen on 127.0.0.1 port 80: too few"],
  [TCP, "ENEW", "Cannot listen on 127.0.0.1 port 80: as the system says"],
  [UNIX, "EACCES", "Cannot listen on unix:/run/a.sock: its folder does not exist, or this user may not make a socket there"],
  [UNIX, "ENOENT", "Cannot listen on unix:/run/a.sock: its folder does not exist"],
];

for (const [address, code, message] of faults) {
  test(`says in one line that ${code} keeps a server from listening by ${address.kind}`, () => {
    const cause = Object.assign(new Error("as the system says"), { code });
    const fault = listenFault(new ListenError(address, cause), "too few");
    assert.deepEqual([fault.code, fault.message], ["port-unusable", message]);
  });
}

test("an address that others can reach is a wrong option", () => {
  assert.equal(listenFault(new ListenError(TCP, null, "loopback"), "").code, "invalid-option");
});
