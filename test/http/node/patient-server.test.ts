import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { PatientServer } from "../../../src/http/node/patient-server.js";
import { RawConnection } from "../../helpers/raw-connection.js";

const REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

test("a server that is closed cuts idle connections, finishes the answer of a busy one, and waits for a first request", async (context) => {
  const server = new PatientServer(
    {},
    () => false,
    (socket) => socket.destroy(),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo; // it listens on a port
  const [unused, idle, busy] = await Promise.all([RawConnection.open(port), RawConnection.open(port), RawConnection.open(port)]);
  context.after(() => Promise.all([unused.close(), idle.close(), busy.close()]));
  const ask = async (connection: RawConnection): Promise<ServerResponse | undefined> => {
    const asked = once(server, "request");
    connection.write(REQUEST);
    const [, res]: ServerResponse[] = await asked;
    return res;
  };
  (await ask(idle))?.end("done");
  assert.equal((await idle.answer()).text, "done");
  const res = await ask(busy);
  assert.ok(res !== undefined && res.socket !== null);
  assert.equal(server.answerUnderWay(res.socket), res);
  server.keepAliveTimeout = 1;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  await idle.rest();
  res.end("x");
  assert.equal((await busy.answer()).text, "x");
  (await ask(unused))?.end("in time");
  assert.equal((await unused.answer()).text, "in time");
  const silent = await RawConnection.open(port).catch(() => null);
  assert.equal(silent, null, "it takes no more connections");
  await closed;
});

test("a server that is closed can be told to cut connections that never asked", async (context) => {
  const server = new PatientServer(
    {},
    () => false,
    (socket) => socket.destroy(),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  const accepted = once(server, "connection");
  const unused = await RawConnection.open((server.address() as AddressInfo).port);
  context.after(() => unused.close());
  await accepted;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeUnusedConnections();
  assert.equal(await unused.rest(), "");
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

test("a server that is closed spares connections that were just answered, until it is told otherwise", async (context) => {
  let nowMs = 10_000;
  const server = new PatientServer(
    {},
    () => false,
    (socket) => socket.destroy(),
    { sparedMs: 500, nowMs: () => nowMs },
  );
  server.on("request", (_req, res) => res.end("done"));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo; // it listens on a port
  const [earlier, later] = [await RawConnection.open(port), await RawConnection.open(port)];
  context.after(() => Promise.all([earlier.close(), later.close()]));
  for (const connection of [earlier, later]) {
    connection.write(REQUEST);
    await connection.answer();
    nowMs += 1;
  }
  nowMs = 10_500;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  assert.equal(await earlier.rest(), "");
  later.write(REQUEST);
  assert.equal((await later.answer()).text, "done");
  server.closeAnsweredConnections();
  assert.equal(await later.rest(), "");
  await closed;
});
