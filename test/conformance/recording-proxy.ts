import { appendFileSync } from "node:fs";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { exchangesOf } from "./exchanges.js";

/** Passes connections on to a server, byte by byte, and notes each of its answers as a line of JSON. */
export class RecordingProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #file: string;
  readonly #port: number;

  private constructor(port: number, file: string) {
    this.#port = port;
    this.#file = file;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#passOn(client));
  }

  /** Listens, for a server on 127.0.0.1; `file` is appended to. */
  static async start(port: number, file: string): Promise<RecordingProxy> {
    const proxy = new RecordingProxy(port, file);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get origin(): string {
    const { port } = this.#server.address() as AddressInfo; // it listens on a port, not on a path
    return `http://127.0.0.1:${port}`;
  }

  /** Cuts what is still there, and notes it. */
  async stop(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #passOn(client: Socket): void {
    const server = connect({ port: this.#port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    const sent = this.#follow(client, server);
    const received = this.#follow(server, client);
    server.once("close", () => {
      for (const answered of exchangesOf(sent(), received())) appendFileSync(this.#file, `${JSON.stringify(answered)}\n`);
    });
  }

  /** Has `to` get what `from` gives, in the same pieces, and end as it ends; gives what has come so far. */
  #follow(from: Socket, to: Socket): () => string {
    const pieces: Buffer[] = [];
    this.#sockets.add(from);
    from.on("data", (piece) => pieces.push(piece));
    from.pipe(to);
    // A connection that was cut has no other way to tell; the other end is cut with it.
    from.on("error", () => to.destroy());
    from.once("close", () => {
      this.#sockets.delete(from);
      if (!from.readableEnded) to.destroy();
    });
    return () => Buffer.concat(pieces).toString("latin1");
  }
}
