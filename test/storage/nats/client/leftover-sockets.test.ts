import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { connectOrDestroy } from "../../../../src/storage/nats/client/leftover-sockets.js";

/** Listens, and says at which port. */
async function listen(t: TestContext, greeting = ""): Promise<number> {
  const accepted: Socket[] = [];
  const server = createServer((socket) => (accepted.push(socket), socket.write(greeting))).listen(0, "127.0.0.1");
  t.after(() => {
    server.close();
    for (const socket of accepted) socket.destroy();
  });
  await once(server, "listening");
  return (server.address() as AddressInfo).port; // it listens on a port, not on a path
}

test("a failure to connect destroys the sockets that were opened for it, and no other", async (t) => {
  const port = await listen(t);
  const own: Socket[] = [];
  let isOpen = (): void => {};
  const opened = new Promise<void>((resolve) => (isOpen = resolve));
  const failing = connectOrDestroy(async () => {
    await Promise.resolve();
    own.push(connect(port, "127.0.0.1"));
    isOpen();
    await other;
    throw new Error("it says nothing");
  });
  const other = opened.then(() => once(others, "connect"));
  const others = connect(port, "127.0.0.1");
  t.after(() => others.destroy());
  await assert.rejects(failing, /it says nothing/);
  assert.deepEqual([own.map(({ destroyed }) => destroyed), others.destroyed], [[true], false]);
});

test("a connection that is there stays, and those to servers that said nothing do not", async (t) => {
  const [silent, port] = [await listen(t), await listen(t, "INFO {}")];
  const { left, made } = await connectOrDestroy(async () => {
    const left = connect(silent, "127.0.0.1");
    const made = connect(port, "127.0.0.1");
    await Promise.all([once(left, "connect"), once(made, "data")]);
    return { left, made };
  });
  assert.deepEqual([left.destroyed, made.destroyed], [true, false]);
  made.destroy();
});
