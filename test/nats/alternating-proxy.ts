import { once } from "node:events";
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What is said of a connection alone. */
const OF_CONNECTION: ReadonlySet<string> = new Set(["connection", "keep-alive"]);

/** Passes each request on to another server than the one before, as a balancer does that knows nothing of streams. */
export class AlternatingProxy {
  readonly #server: Server;
  readonly #ports: readonly number[];
  #count = 0;

  private constructor(ports: readonly number[]) {
    this.#ports = ports;
    this.#server = createServer((req, res) => this.#passOn(req, res));
    // A client may break off a body that was refused early: Node would answer 400, which no server said.
    this.#server.on("clientError", (_, socket) => socket.destroy());
  }

  /** Listens, for servers on 127.0.0.1. */
  static async start(ports: readonly number[]): Promise<AlternatingProxy> {
    const proxy = new AlternatingProxy(ports);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get origin(): string {
    const { port } = this.#server.address() as AddressInfo; // it listens on a port, not on a path
    return `http://127.0.0.1:${port}`;
  }

  /** Cuts what is still there. */
  async stop(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #passOn(req: IncomingMessage, res: ServerResponse): void {
    const port = this.#ports[this.#count % this.#ports.length];
    this.#count += 1;
    const headers = ofMessage(req.rawHeaders);
    const passed = request({ host: "127.0.0.1", port, method: req.method, path: req.url, headers, agent: false });
    passed.once("response", (answer) => {
      res.sendDate = false; // the server's own is there
      res.writeHead(answer.statusCode ?? 0, answer.statusMessage, ofMessage(answer.rawHeaders));
      res.flushHeaders();
      answer.pipe(res);
      // An answer that is cut has no other way to tell.
      answer.once("close", () => answer.complete || res.destroy());
    });
    passed.on("error", () => res.destroy());
    res.once("close", () => {
      passed.destroy();
      // The rest of a body that was refused early: unread, it would hold up the next request of its connection.
      req.unpipe(passed).resume();
    });
    req.pipe(passed);
  }
}

/** Names and values in turn, without those of the connection. */
function ofMessage(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, index) => !OF_CONNECTION.has((rawHeaders[index - (index % 2)] ?? "").toLowerCase()));
}
