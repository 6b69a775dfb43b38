import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { startServer } from "../helpers/test-server.js";

test("an admin address has 64 connections at a time, 16 of one client, and tells the next that it is busy", async (context) => {
  const server = await startServer(context, { adminListen: "127.0.0.1:0" });
  const [host = "", port = ""] = (server.server.adminListening[0] ?? "").split(":");
  const opened: Socket[] = [];
  context.after(() => opened.forEach((socket) => socket.destroy()));
  /** A connection of which the server knows: it has its first answer. */
  const ask = async (localAddress = "127.0.0.2"): Promise<{ socket: Socket; status: string }> => {
    const socket = connect({ port: Number(port), host, localAddress });
    opened.push(socket);
    socket.write("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const [answer] = (await once(socket, "data")) as [Buffer]; // the event's argument
    return { socket, status: answer.toString().slice(0, 12) };
  };
  const served = [];
  const refuses = async (localAddress: string): Promise<void> => {
    const next = connect({ port: Number(port), host, localAddress });
    opened.push(next);
    assert.match(await text(next), /^HTTP\/1\.1 503 [\s\S]*"code":"overloaded"/);
  };
  for (let client = 2; client < 6; client += 1) {
    for (let count = 0; count < 16; count += 1) served.push(await ask(`127.0.0.${client}`));
    if (client === 2) await refuses("127.0.0.2");
  }
  assert.ok(served.every(({ status }) => status === "HTTP/1.1 200"));
  await refuses("127.0.0.6");
  assert.equal((await server.send("GET", "/health")).status, 200, "the others' connections are counted apart");
  served[0]?.socket.destroy();
  // It is known to be gone some turns later.
  while ((await ask()).status !== "HTTP/1.1 200");
});
