import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { RawConnection } from "./raw-connection.js";

/** Both ends of a connection, without HTTP on it. */
export async function socketPair(context: TestContext): Promise<{ client: RawConnection; socket: Socket }> {
  const listener = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const accepted = once(listener, "connection");
  const client = await RawConnection.open((listener.address() as AddressInfo).port);
  const [socket]: Socket[] = await accepted;
  assert.ok(socket !== undefined);
  context.after(async () => {
    await client.close();
    socket.destroy();
    listener.close();
  });
  return { client, socket };
}
