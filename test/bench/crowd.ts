import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Connections that are opened at a time: a server's queue of those to accept holds 511. */
const OPENED_AT_ONCE = 100;

/** How a crowd is opened. */
export interface CrowdOptions {
  /** Given what the connection `index` is sent. */
  readonly take?: (chunk: Buffer, index: number) => void;
  /** Resolves when the server has taken all that was sent to it; without, that is when all have been sent something. */
  readonly taken?: () => Promise<unknown>;
}

/** Many connections that each sent one request, and take whatever comes. */
export class Crowd {
  readonly #sockets: Socket[] = [];
  readonly #take: (chunk: Buffer, index: number) => void;
  /** Who has been sent something since the count began. */
  #answered = new Set<Socket>();
  #look: () => void = () => undefined;
  #fault: Error | null = null;

  /** The connection `index` sends `requestOf(index)`. Resolves when the server has taken all. */
  static async open(
    port: number,
    size: number,
    requestOf: (index: number) => Buffer,
    { take = () => undefined, taken }: CrowdOptions = {},
  ): Promise<Crowd> {
    const crowd = new Crowd(take);
    for (let opened = 0; opened < size;) {
      const indices = Array.from({ length: Math.min(OPENED_AT_ONCE, size - opened) }, (_, index) => opened + index);
      await Promise.all(indices.map((index) => crowd.#join(port, index, requestOf(index))));
      opened += indices.length;
      await (taken === undefined ? crowd.answered(opened) : taken());
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
