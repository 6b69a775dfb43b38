import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { PatientServer } from "../../../src/http/node/patient-server.js";
import { RawConnection } from "../../helpers/raw-connection.js";

const REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

test("a server that is closed cuts idle connections, and finishes the answer of a busy one", async (context) => {
  const server = new PatientServer(
    {},
    () => false,
    (socket) => socket.destroy(),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo; // it listens on a port
  const idle = await RawConnection.open(port);
  const busy = await RawConnection.open(port);
  context.after(() => Promise.all([idle.close(), busy.close()]));
  const asked = once(server, "request");
  busy.write(REQUEST);
  const [, res]: ServerResponse[] = await asked;
  assert.ok(res !== undefined && res.socket !== null);
  assert.equal(server.answerUnderWay(res.socket), res);
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  await idle.rest();
  res.end("x");
  assert.equal((await busy.answer()).text, "x");
  await closed;
});

test("a client that ends its side still gets its answer", async (context) => {
  const server = new PatientServer(
    {},
    () => false,
    (socket) => socket.end(),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  context.after(() => server.close());
  const client = await RawConnection.open((server.address() as AddressInfo).port);
  context.after(() => client.close());
  server.on("request", (req, res) => req.socket.once("end", () => setImmediate(() => res.end("late"))));
  client.socket.end(REQUEST);
  assert.equal((await client.answer()).text, "late");
});
