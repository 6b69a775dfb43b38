import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";

const CHANNEL = "net.client.socket";

/**
 * Runs `connect`, and destroys the sockets that it leaves: all where it fails, else those of servers that accept and
 * say nothing. The client of NATS leaves these open, and nobody else can reach them.
 */
export async function connectOrDestroy<T>(connect: () => Promise<T>): Promise<T> {
  const opened: Socket[] = [];
  // Only for as long as it connects: what follows calls costs each promise of the process a little.
  const calls = new AsyncLocalStorage<true>();
  const note = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket }; // as Node documents the channel
    if (calls.getStore() === true) opened.push(socket);
  };
  subscribe(CHANNEL, note);
  try {
    const connection = await calls.run(true, connect);
    for (const socket of opened) if (socket.bytesRead === 0) socket.destroy();
    return connection;
  } catch (fault) {
    for (const socket of opened) socket.destroy();
    throw fault;
  } finally {
    unsubscribe(CHANNEL, note);
    calls.disable();
  }
}
