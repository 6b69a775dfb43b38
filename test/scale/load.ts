import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** How a run of requests went. */
export interface LoadResult {
  readonly seconds: number;
  /** How many answers had which status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** Milliseconds from request to answer, ascending. */
  readonly latenciesMs: Float64Array;
}

/** Says which request is the `index`th; `null` ends the run. */
export type RequestOf = (index: number) => Buffer | null;

/** Connections to a server, each of which sends its next request when the last one is answered. */
export class Load {
  readonly #connections: readonly Connection[];

  static async open(port: number, connections: number): Promise<Load> {
    const sockets = Array.from({ length: connections }, () => connect({ port, host: "127.0.0.1", noDelay: true }));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    return new Load(sockets.map((socket) => new Connection(socket)));
  }

  constructor(connections: readonly Connection[]) {
    this.#connections = connections;
  }

  /** Sends what `requestOf` says, from index 0 on, until it says `null`. Rejects when a connection ends. */
  async run(requestOf: RequestOf): Promise<LoadResult> {
    const statuses = new Map<number, number>();
    const latenciesMs: number[] = [];
    let next = 0;
    const startedMs = performance.now();
    const worker = async (connection: Connection): Promise<void> => {
      for (let request = requestOf(next++); request !== null; request = requestOf(next++)) {
        const sentMs = performance.now();
        const status = await connection.ask(request);
        latenciesMs.push(performance.now() - sentMs);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    await Promise.all(this.#connections.map(worker));
    return { seconds: (performance.now() - startedMs) / 1000, statuses, latenciesMs: Float64Array.from(latenciesMs).sort() };
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }
}

/** The bytes of a request with a body of its own. */
export function requestBytes(method: string, path: string, headers: Readonly<Record<string, string>> = {}, body = ""): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${lines.join("")}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const TEXT = { "Content-Type": "text/plain" };
const APPENDED = "x".repeat(100);

/** The bytes of a request that makes a stream of text. */
export function creationBytes(path: string): Buffer {
  return requestBytes("PUT", path, TEXT);
}

/** The bytes of an append of 100 bytes to one. */
export function appendBytes(path: string): Buffer {
  return requestBytes("POST", path, TEXT, APPENDED);
}

/** The value below which `share` of the ascending `values` are. */
export function quantile(values: ArrayLike<number>, share: number): number {
  return values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? NaN;
}

/** The middle one of `values`. */
export function median(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}

/** One keep-alive connection with at most one request on its way. */
class Connection {
  readonly #socket: Socket;
  #received = "";
  #answered: { resolve(status: number): void; reject(error: Error): void } | null = null;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => this.#take(chunk));
    socket.on("error", () => undefined);
    socket.on("close", () => this.#answered?.reject(new Error("the server closed a connection")));
  }

  ask(request: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#answered = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#answered = null;
    this.#socket.destroy();
  }

  #take(chunk: string): void {
    this.#received += chunk;
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd === -1) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#received.slice(0, headEnd + 2))?.[1] ?? "0";
    if (this.#received.length < headEnd + 4 + Number(length)) return;
    const status = Number(this.#received.slice(9, 12));
    this.#received = "";
    const answered = this.#answered;
    this.#answered = null;
    answered?.resolve(status);
  }
}
