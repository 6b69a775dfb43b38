import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import type { TestContext } from "node:test";

/** What Node tells of each connection that a server of this process accepts. */
const CHANNEL = "net.server.socket";

/** The servers' ends of the connections that are made during a test: they know what was read, and what is not sent yet. */
export class AcceptedSockets {
  readonly #sockets = new Set<Socket>();

  constructor(context: TestContext) {
    const note = (message: unknown): void => {
      const { socket } = message as { readonly socket: Socket }; // as Node documents it
      this.#sockets.add(socket);
    };
    subscribe(CHANNEL, note);
    context.after(() => void unsubscribe(CHANNEL, note));
  }

  /** The other end of a client's connection, which the server has accepted: it has read from it or answered. */
  otherEndOf(client: Socket): Socket {
    const { localAddress, localPort } = client;
    const isItsEnd = ({ remoteAddress, remotePort }: Socket): boolean => remoteAddress === localAddress && remotePort === localPort;
    return [...this.#sockets].findLast(isItsEnd) ?? assert.fail("no server has accepted the connection");
  }
}
