import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { LISTEN_BACKLOG } from "../../src/http/listen/plan.js";
import { createHandler, type ServerOptions } from "../../src/server.js";
import type { TestScope } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

/** streamdir where a proxy finds it, in a server that notes what it is asked. */
export class Origin {
  readonly port: number;
  /** Methods and targets, in the order in which they came. */
  readonly requests: string[];

  /** Ends it before the test is over. */
  readonly stop: () => Promise<void>;

  private constructor(port: number, requests: string[], stop: () => Promise<void>) {
    this.port = port;
    this.stop = stop;
    this.requests = requests;
  }

  /** Serves a directory of its own until the test is over, at any free port where none is given. */
  static async start(scope: TestScope, options: Partial<ServerOptions> = {}, port = 0): Promise<Origin> {
    const handler = await createHandler({ dir: tempDir(), logLevel: "silent", shutdownTimeoutMs: 1000, ...options });
    const requests: string[] = [];
    const server = createServer((req, res) => {
      requests.push(`${req.method} ${req.url}`);
      handler(req, res);
    });
    // As many may wait to be accepted as at the server itself: Node has fewer wait, and a proxy refuses for those beyond.
    await once(server.listen({ port, host: "127.0.0.1", backlog: LISTEN_BACKLOG }), "listening");
    const stop = async (): Promise<void> => {
      server.close();
      await handler.close();
      server.closeAllConnections();
    };
    scope.after(stop);
    return new Origin((server.address() as AddressInfo).port, requests, stop); // it listens on a port
  }

  /** What a stream's name is appended to, past every proxy. */
  get url(): string {
    return `http://127.0.0.1:${this.port}/v1/stream/`;
  }

  /** How many reads there were. */
  get reads(): number {
    return this.requests.filter((request) => request.startsWith("GET ")).length;
  }
}
