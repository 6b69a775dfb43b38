import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Connections that are opened at a time. */
const OPENED_AT_ONCE = 100;

/** Many connections that each sent one request, and take whatever comes. */
export class Crowd {
  readonly #sockets: Socket[] = [];
  readonly #take: (chunk: Buffer, index: number) => void;
  /** How many have been sent something since the count began. */
  #answered = new Set<Socket>();
  #look: () => void = () => undefined;
  #fault: Error | null = null;

  /** The connection `index` sends `requestOf(index)`. Resolves when all are open and have sent. */
  static async open(port: number, size: number, requestOf: (index: number) => Buffer, take: (chunk: Buffer, index: number) => void = () => undefined): Promise<Crowd> {
    const crowd = new Crowd(take);
    for (let opened = 0; opened < size; opened += OPENED_AT_ONCE) {
      const indices = Array.from({ length: Math.min(OPENED_AT_ONCE, size - opened) }, (_, index) => opened + index);
      await Promise.all(indices.map((index) => crowd.#join(port, index, requestOf(index))));
      // One hundred after the other, also at the server: what waits to be accepted is bounded.
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    return crowd;
  }

  private constructor(take: (chunk: Buffer, index: number) => void) {
    this.#take = take;
  }

  /** Resolves when `count` of the connections have been sent something; rejects when one is ended. */
  answered(count: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#look = () => {
        if (this.#fault !== null) reject(this.#fault);
        else if (this.#answered.size >= count) resolve();
      };
      this.#look();
    });
  }

  /** Counts anew who is sent something. */
  recount(): void {
    this.#answered = new Set();
  }

  close(): void {
    for (const socket of this.#sockets) socket.removeAllListeners("close").destroy();
  }

  async #join(port: number, index: number, request: Buffer): Promise<void> {
    const socket = connect({ port, host: "127.0.0.1" });
    this.#sockets.push(socket);
    await once(socket, "connect");
    socket.on("data", (chunk: Buffer) => {
      this.#take(chunk, index);
      this.#answered.add(socket);
      this.#look();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.#fault = new Error("the server closed a connection");
      this.#look();
    });
    socket.write(request);
  }
}
