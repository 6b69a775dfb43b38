import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { awaitsContinue } from "../../../src/http/node/awaits-continue.js";
import { RawConnection } from "../../helpers/raw-connection.js";

/** What is said of a request with this Expect, by a server that listens to `checkContinue` or leaves that to Node. */
async function saidOf(t: TestContext, expect: string | null, listens: boolean): Promise<boolean> {
  let said: boolean | null = null;
  const look = (req: IncomingMessage, res: ServerResponse): void => {
    said = awaitsContinue(req, res);
    res.end();
  };
  const server = createServer(look);
  if (listens) server.on("checkContinue", look);
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const connection = await RawConnection.open((server.address() as AddressInfo).port);
  const line = expect === null ? "" : `Expect: ${expect}\r\n`;
  connection.write(`POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n${line}\r\n`);
  while ((await connection.head()).status === 100);
  await connection.close();
  return said ?? assert.fail("nothing was asked");
}

test("a client waits for a 100 where it says so and Node has sent none", async (t) => {
  for (const [expect, listens, expected] of [
    ["100-continue", true, true],
    ["100-Continue", true, true],
    ["100-continue", false, false],
    [null, true, false],
    [null, false, false],
  ] as const)
    assert.equal(await saidOf(t, expect, listens), expected, `${String(expect)} ${listens}`);
});
