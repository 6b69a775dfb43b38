import { request, type IncomingMessage, type ServerResponse } from "node:http";
import type { TestScope } from "./process.js";
import { serverAt } from "./server-at.js";

/** The origin of a proxy that passes requests on as they come to a server of streams, but those that `answers` answers itself. */
export function passingProxy(
  scope: TestScope,
  streams: string,
  answers: (req: IncomingMessage, res: ServerResponse) => boolean,
): Promise<string> {
  return serverAt(scope, (req, res) => {
    if (answers(req, res)) return;
    const passed = request(new URL(req.url ?? "", streams), { method: req.method, headers: req.headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    passed.on("error", () => res.destroy());
    res.on("close", () => passed.destroy());
    req.pipe(passed);
  });
}

/** A proxy whose server can be away: it then answers with a 502 of its own, which pages of other origins can't read. */
export class Gateway {
  /** What a stream's name is appended to. */
  streams = "";
  #isAway = false;
  #refused: () => void = () => undefined;
  readonly #open = new Set<ServerResponse>();

  /** Passes on to `streams` until the test is over. */
  static async start(scope: TestScope, streams: string): Promise<Gateway> {
    const gateway = new Gateway();
    const origin = await passingProxy(scope, streams, (req, res) => gateway.#answers(req, res));
    gateway.streams = origin + new URL(streams).pathname;
    return gateway;
  }

  /** The server is away: what is under way breaks off. Resolves when somebody has come to follow a stream, and was refused. */
  async loseServer(): Promise<void> {
    const refused = new Promise<void>((resolve) => (this.#refused = resolve));
    this.#isAway = true;
    for (const res of this.#open) res.destroy();
    await refused;
  }

  /** The server is there again. */
  findServer(): void {
    this.#isAway = false;
  }

  #answers(req: IncomingMessage, res: ServerResponse): boolean {
    if (!this.#isAway) {
      this.#open.add(res);
      res.on("close", () => this.#open.delete(res));
      return false;
    }
    res.writeHead(502, { "Content-Type": "text/html" }).end("<h1>502 Bad Gateway</h1>");
    if (req.url?.includes("live=sse") === true) res.on("finish", () => this.#refused());
    return true;
  }
}
