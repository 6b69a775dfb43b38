import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import net, { type AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { Clients } from "../../../src/http/bounds/clients.js";
import { ConnectionsByClient } from "../../../src/http/bounds/connections-by-client.js";
import { ConnectionGate, connectionLimitFor, type ConnectionLimit } from "../../../src/http/bounds/connection-limit.js";
import { ConnectionFigures } from "../../../src/metrics/connection-figures.js";
import { keptLog, type LogLine } from "../../helpers/engine.js";

test("connections leave 320 descriptors to files, and half of them where there are few", () => {
  const cases = [
    [Infinity, Infinity, 16],
    [20_000, 19_664, 16],
    [1000, 664, 16],
    [159, 64, 16],
    [30, 11, 4],
    [2, 1, 1],
    [0, 1, 1],
  ] as const;
  for (const [free, served, turnedAway] of cases) assert.deepEqual(connectionLimitFor(free), { served, turnedAway }, `${free} free`);
});

test("connections are never more than the option says", () => {
  const cases = [
    [Infinity, 10, 10],
    [20_000, 10, 10],
    [30, 10, 10],
    [30, 100, 11],
    [1000, Infinity, 664],
  ] as const;
  for (const [free, max, served] of cases) assert.equal(connectionLimitFor(free, max).served, served, `${free} free, ${max} at most`);
});

interface Gated {
  readonly server: Server;
  readonly gate: ConnectionGate;
  readonly figures: ConnectionFigures;
  readonly log: readonly LogLine[];
  /** A new connection, and all that it is sent. */
  connect(from?: string): { readonly socket: net.Socket; readonly text: Promise<string> };
}

/** A server behind a gate: it answers a request with `served`. */
async function gated(t: TestContext, limit: ConnectionLimit, { isTls = false, maxPerClient = Infinity } = {}): Promise<Gated> {
  const server = createServer((_req, res) => res.end("served"));
  const { log, lines } = keptLog();
  const figures = new ConnectionFigures();
  const byClient = new ConnectionsByClient(maxPerClient, new Clients("127.0.0.9", keptLog().log));
  const gate = new ConnectionGate(limit, byClient, figures, log, (socket, crowd) => socket.end(`refused ${crowd}`));
  // Listeners of this event take a socket.
  const [serve] = server.listeners("connection") as ((socket: net.Socket) => void)[];
  server.removeAllListeners("connection");
  server.on("connection", (socket: net.Socket) => {
    if (gate.admit(socket, !isTls)) serve?.call(server, socket);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const sockets: net.Socket[] = [];
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    gate.destroyTurnedAway();
    await new Promise((resolve) => server.close(resolve));
  });
  const connect = (from = "127.0.0.1"): ReturnType<Gated["connect"]> => {
    const { port } = server.address() as AddressInfo; // it listens on a port
    const socket = net.connect({ port, host: "127.0.0.1", localAddress: from, allowHalfOpen: true });
    sockets.push(socket);
    let said = "";
    socket.setEncoding("latin1").on("data", (chunk: string) => (said += chunk));
    socket.on("error", () => undefined);
    const text = new Promise<string>((resolve) => socket.on("end", () => resolve(said)).on("close", () => resolve(said)));
    return { socket, text };
  };
  return { server, gate, figures, log: lines, connect };
}

const REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

async function answered(socket: net.Socket): Promise<string> {
  socket.write(REQUEST);
  const [text] = (await once(socket, "data")) as [string]; // the event's argument
  return text;
}

describe("the gate that limits connections", () => {
  test("lets as many through as are served, and refuses the others without looking at their requests", async (t) => {
    const { connect, log } = await gated(t, { served: 2, turnedAway: 1 });
    const first = connect();
    assert.match(await answered(first.socket), /served$/);
    const second = connect();
    assert.match(await answered(second.socket), /served$/);
    const third = connect();
    third.socket.write(REQUEST.repeat(3));
    assert.equal(await third.text, "refused all");
    const thirdClosed = once(third.socket, "close");
    third.socket.end();
    await thirdClosed;
    assert.match(await answered(first.socket), /served$/);
    assert.deepEqual(
      log.map(({ level }) => level),
      ["warn"],
    );
  });

  test("has a place again when a connection is over, and warns again only when many were free", async (t) => {
    const { connect, log } = await gated(t, { served: 2, turnedAway: 2 });
    const [one, two] = [connect(), connect()];
    for (const { socket } of [one, two]) assert.match(await answered(socket), /served$/);
    for (let round = 0; round < 2; round += 1) assert.equal(await endedText(connect()), "refused all");
    assert.equal(log.length, 1);
    for (const { socket } of [one, two]) socket.destroy();
    const [three, four] = [await served(connect), await served(connect)];
    assert.equal(await endedText(connect()), "refused all");
    assert.equal(log.length, 2);
    for (const socket of [three, four]) socket.destroy();
  });

  test("cuts what is one too many without an answer where that would need a handshake", async (t) => {
    const { connect, figures, log } = await gated(t, { served: 1, turnedAway: 1 }, { isTls: true });
    assert.match(await answered(connect().socket), /served$/);
    assert.equal(await connect().text, "");
    assert.equal(log.length, 1);
    assert.deepEqual(figures.refusals()[0], { labels: { limit: "all" }, value: 1 });
  });

  test("refuses who has too many by itself, and forgets a refused connection at once", async (t) => {
    const { connect } = await gated(t, { served: 3, turnedAway: 2 }, { maxPerClient: 1 });
    const first = connect("127.0.0.2");
    assert.match(await answered(first.socket), /served$/);
    for (let round = 0; round < 4; round += 1) assert.equal(await endedText(connect("127.0.0.2")), "refused client");
    for (const from of ["127.0.0.3", "127.0.0.4"]) assert.match(await answered(connect(from).socket), /served$/);
    assert.equal(await endedText(connect("127.0.0.5")), "refused all");
    first.socket.destroy();
    await served(() => connect("127.0.0.5"));
  });

  test("does not count a trusted proxy's connections for it", async (t) => {
    const { connect } = await gated(t, { served: 3, turnedAway: 2 }, { maxPerClient: 1 });
    for (let count = 0; count < 3; count += 1) assert.match(await answered(connect("127.0.0.9").socket), /served$/);
    assert.equal(await endedText(connect("127.0.0.9")), "refused all");
  });

  test("has few on their way out: who came first is cut for the next", async (t) => {
    const { connect, server } = await gated(t, { served: 0, turnedAway: 2 });
    for (let count = 0; count < 5; count += 1) assert.equal(await connect().text, "refused all");
    const open = (): Promise<number> => new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
    while ((await open()) > 2) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(await open(), 2);
  });

  test("counts those that are open, and those that were turned away, by whose limit", async (t) => {
    const { connect, figures, server } = await gated(t, { served: 2, turnedAway: 2 }, { maxPerClient: 1 });
    const first = connect("127.0.0.2");
    const second = connect("127.0.0.3");
    for (const { socket } of [first, second]) assert.match(await answered(socket), /served$/);
    for (const from of ["127.0.0.2", "127.0.0.4", "127.0.0.5"]) assert.match(await endedText(connect(from)), /^refused/);
    assert.deepEqual([figures.open, figures.limit], [2, 2]);
    assert.deepEqual(figures.refusals(), [
      { labels: { limit: "all" }, value: 2 },
      { labels: { limit: "client" }, value: 1 },
    ]);
    server.closeAllConnections();
    while (figures.open > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  test("cuts those who do not take their refusal when all ends", async (t) => {
    const { connect, gate, server } = await gated(t, { served: 0, turnedAway: 2 });
    const { text, socket } = connect();
    await text;
    assert.equal(socket.destroyed, false);
    const closed = new Promise((resolve) => server.close(resolve));
    gate.destroyTurnedAway();
    await closed;
  });
});

async function endedText({ socket, text }: ReturnType<Gated["connect"]>): Promise<string> {
  const said = await text;
  socket.destroy();
  return said;
}

/** A connection that is served, as soon as the server has seen that others are gone. */
async function served(connect: Gated["connect"]): Promise<net.Socket> {
  for (;;) {
    const { socket, text } = connect();
    socket.write(REQUEST);
    const first = await Promise.race([text, once(socket, "data").then(([chunk]) => String(chunk))]);
    if (first.endsWith("served")) return socket;
    socket.destroy();
  }
}
