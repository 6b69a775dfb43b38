import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { test } from "node:test";
import { freePorts } from "../helpers/free-ports.js";
import { startStreamdir } from "../helpers/process.js";
import { HERE } from "./front-end.js";
import { NatsCluster } from "./nats-cluster.js";

for (const signal of ["SIGTERM", "SIGINT"] as const)
  test(`${signal} ends a start that waits for a NATS server`, { timeout: 60_000 }, async (t) => {
    const [port = 0] = await freePorts(1);
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(port, "127.0.0.1");
    t.after(() => {
      silent.close();
      for (const socket of sockets) socket.destroy();
    });
    const connected = once(silent, "connection");
    const storage = `nats://127.0.0.1:${port}/b`;
    const command = startStreamdir(t, ["--storage", storage, "--port", "0", "--log-format", "text"], { cwd: HERE });
    await connected;
    command.kill(signal);
    const { status, stdout, stderr } = await command.ended;
    assert.deepEqual([status, stdout], [0, ""]);
    assert.match(stderr, new RegExp(` info  stopping signal=${signal}\n$`));
  });

test("a start that waits for more servers says so, and is ended by SIGTERM", { timeout: 60_000 }, async (t) => {
  const cluster = await NatsCluster.start({ size: 3 });
  t.after(() => cluster.stop());
  const args = ["--storage", cluster.storageOf("b", "?replicas=5"), "--port", "0", "--log-format", "text"];
  const command = startStreamdir(t, args, { cwd: HERE });
  await command.stderrLine(/ warn {2}waiting for the NATS servers fault=".*peers.*"/);
  command.kill("SIGTERM");
  assert.equal((await command.ended).status, 0);
});
