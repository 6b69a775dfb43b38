import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";

const CHANNEL = "net.client.socket";

/**
 * Runs `connect`, and destroys the sockets that it has opened where it fails: the client of NATS leaves that of a
 * server which accepts and says nothing open, and nobody else can reach it.
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
    return await calls.run(true, connect);
  } catch (fault) {
    for (const socket of opened) socket.destroy();
    throw fault;
  } finally {
    unsubscribe(CHANNEL, note);
    calls.disable();
  }
}
