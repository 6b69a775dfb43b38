import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { createServer } from "../../src/server.js";
import { keptLog } from "../helpers/engine.js";
import { until } from "../helpers/until.js";
import { NatsCluster } from "./nats-cluster.js";
import { RawCluster } from "./raw-cluster.js";
import { SwitchingProxy } from "./switching-proxy.js";

/** A server that accepts connections and says nothing. */
interface Silent {
  readonly port: number;
  readonly sockets: readonly Socket[];
}

async function startSilent(t: TestContext): Promise<Silent> {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, sockets }; // it listens on a port, not on a path
}

/** Resolves when the other end of each connection is gone. */
async function allGone({ sockets }: Silent): Promise<void> {
  await Promise.all(
    sockets.map(async (socket) => {
      const gone = once(socket, "close");
      socket.resume();
      await gone;
    }),
  );
}

test("a start that fails at a server which says nothing leaves no connection", { timeout: 60_000 }, async (t) => {
  const silent = await startSilent(t);
  const storage = `nats://127.0.0.1:${silent.port}/b`;
  await assert.rejects(createServer({ storage, port: 0, log: keptLog().log }), /Cannot start: no NATS server can be used at .*: timeout$/);
  assert.ok(silent.sockets.length > 0);
  await allGone(silent);
});

test("a server that closes while it connects again leaves no connection", { timeout: 60_000 }, async (t) => {
  const cluster = await NatsCluster.start({ size: 1 });
  t.after(() => cluster.stop());
  const proxy = await SwitchingProxy.start(cluster.members[0]?.clientPort ?? 0);
  t.after(() => proxy.stop());
  const silent = await startSilent(t);
  const server = await createServer({ storage: `nats://${proxy.address}/b?replicas=1&shards=1`, port: 0, log: keptLog().log });
  proxy.leadTo(silent.port);
  await until(() => silent.sockets.length > 0);
  await server.close();
  await allGone(silent);
});

test("a server that closes without its connection warns of no lease", { timeout: 60_000 }, async (t) => {
  const cluster = await NatsCluster.start({ size: 1 });
  t.after(() => cluster.stop());
  const { log, lines } = keptLog();
  const server = await createServer({ storage: cluster.storageOf("b", "?replicas=1&shards=1"), port: 0, log });
  await leaseIsTaken(cluster);
  await cluster.kill(0);
  await until(() => lines.some(({ message }) => message === "the connection to the NATS cluster is lost"));
  await server.close();
  const told = lines.filter(({ message }) => message === "the sweep's lease can't be given up");
  assert.deepEqual(
    told.map(({ level }) => level),
    ["debug"],
  );
  assert.deepEqual(
    lines.filter(({ level }) => level === "error"),
    [],
  );
});

async function leaseIsTaken(cluster: NatsCluster): Promise<void> {
  const raw = await RawCluster.connect(cluster.servers);
  // The sweep goes on from the lease to the reserve.
  for (let found = null; found === null;)
    found = (await raw.call("STREAM.MSG.GET.SD_b_0", { last_by_subj: "sd.b.0.r" }))?.["message"] ?? null;
  await raw.close();
}
