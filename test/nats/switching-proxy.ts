import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** An address of 127.0.0.1 behind which a test has one server, and then another. */
export class SwitchingProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #port: number;

  private constructor(port: number) {
    this.#port = port;
    this.#server = createServer({ noDelay: true }, (client) => this.#passOn(client));
  }

  /** Listens, for a server on a port of 127.0.0.1. */
  static async start(port: number): Promise<SwitchingProxy> {
    const proxy = new SwitchingProxy(port);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  /** `host:port`, for clients. */
  get address(): string {
    const { port } = this.#server.address() as AddressInfo; // it listens on a port, not on a path
    return `127.0.0.1:${port}`;
  }

  /** Leads to another port from now on, and cuts all connections. */
  leadTo(port: number): void {
    this.#port = port;
    this.#cutAll();
  }

  #cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#cutAll();
    await closed;
  }

  #passOn(client: Socket): void {
    const server = connect({ port: this.#port, host: "127.0.0.1", noDelay: true });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.pipe(to);
      // What is cut on one side is cut on the other.
      from.on("error", () => to.destroy());
      from.once("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }
}
