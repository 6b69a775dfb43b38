import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { answerUnderWay } from "../../../src/http/node/answer-under-way.js";
import { RawConnection } from "../../helpers/raw-connection.js";

test("a connection has an answer under way from a request's head until the answer is out", async (context) => {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const accepted = once(server, "connection");
  const client = await RawConnection.open((server.address() as AddressInfo).port);
  context.after(async () => {
    await client.close();
    server.close();
  });
  const [socket]: Socket[] = await accepted;
  assert.ok(socket !== undefined);
  assert.equal(answerUnderWay(socket), null);
  const asked = once(server, "request");
  client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const [, res] = await asked;
  assert.equal(answerUnderWay(socket), res);
  const over = once(res, "close");
  res.end("x");
  await over;
  assert.equal(answerUnderWay(socket), null);
});
