import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import type { TestContext } from "node:test";
import type { Settings } from "../../src/options.js";

/** One answer, as it came over the wire. */
export interface Answer {
  readonly status: number;
  readonly statusText: string;
  /** By lower-case name; what came more than once is joined with a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The body as UTF-8. */
  readonly text: string;
}

interface Head {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Record<string, string>;
}

/** How raw connections reach a server; a test may have them, and the servers of test-server.ts, use another way. */
export const transport = {
  /** Resolves when the connection is there. */
  async connect(port: number, from: string): Promise<Socket> {
    const socket = connect({ port, host: "127.0.0.1", localAddress: from, allowHalfOpen: true });
    await once(socket, "connect");
    return socket;
  },
  /** What a server is started with. */
  options(): Partial<Settings> {
    return {};
  },
};

/** A TCP connection on which a test writes what it likes and reads what comes back. */
export class RawConnection {
  readonly socket: Socket;
  /** All that has come and was not taken yet. */
  #received = Buffer.alloc(0);
  /** What has come of an answer in chunks and is not out of them yet; `null` where none is followed. */
  #chunked: Buffer | null = null;
  #isOver = false;
  #changed: (() => void)[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => {
      if (this.#chunked === null) this.#received = Buffer.concat([this.#received, chunk]);
      else this.#takeOut(Buffer.concat([this.#chunked, chunk]));
      this.#tellChange();
    });
    // A reset is one of the ways in which a connection ends here.
    socket.on("error", () => {});
    for (const event of ["end", "close"]) {
      socket.on(event, () => {
        this.#isOver = true;
        this.#tellChange();
      });
    }
  }

  /** A new connection to a port of this machine; every address of 127.0.0.0/8 is a client's of its own. */
  static async open(port: number, from = "127.0.0.1"): Promise<RawConnection> {
    return new RawConnection(await transport.connect(port, from));
  }

  /** Sends bytes; text is sent as latin1, so that every byte can be written down. */
  write(bytes: string | Buffer): void {
    this.socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  }

  /** The next answer. `toHead` says that it answers a HEAD. Rejects when the connection ends before it is whole. */
  async answer({ toHead = false } = {}): Promise<Answer> {
    const head = await this.#head();
    const hasNoBody = toHead || head.status === 204 || head.status === 304 || head.status < 200;
    const body = hasNoBody ? Buffer.alloc(0) : await this.#body(head);
    return { ...head, body, text: body.toString() };
  }

  /** The head of the next answer; what follows is left to `until` and `rest`, out of its chunks where it has some. */
  async head(): Promise<Head> {
    const head = await this.#head();
    if (head.headers["transfer-encoding"] === "chunked") this.#takeOut(this.#take(this.#received.length));
    return head;
  }

  async #head(): Promise<Head> {
    const end = await this.#find("\r\n\r\n");
    const [statusLine = "", ...lines] = this.#take(end).toString("latin1").trimEnd().split("\r\n");
    const [, status, statusText] = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(statusLine) ?? assert.fail(`not a status line: ${statusLine}`);
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(":");
      const name = line.slice(0, colon).toLowerCase();
      const value = line.slice(colon + 1).trim();
      headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
    }
    return { status: Number(status), statusText: statusText ?? "", headers };
  }

  /** Takes what is whole out of chunks. Behind the last of them bytes are as they come again. */
  #takeOut(chunked: Buffer): void {
    for (let at = 0; ;) {
      const line = chunked.indexOf("\r\n", at, "latin1");
      const size = /^[0-9a-f]+$/.exec(chunked.toString("latin1", at, Math.max(at, line)));
      assert.ok(line < 0 || size !== null, `no size of a chunk: ${JSON.stringify(chunked.toString("latin1", at, at + 100))}`);
      const from = line + 2;
      const to = from + Number.parseInt(size?.[0] ?? "0", 16);
      this.#chunked = chunked.subarray(at);
      if (line < 0 || chunked.length < to + 2) return;
      assert.equal(chunked.toString("latin1", to, to + 2), "\r\n", "the end of a chunk");
      at = to + 2;
      this.#received = Buffer.concat([this.#received, chunked.subarray(from, to)]);
      if (to > from) continue;
      this.#received = Buffer.concat([this.#received, chunked.subarray(at)]);
      this.#chunked = null;
      return;
    }
  }

  /** All text (latin1) up to and with the next `end`. */
  async until(end: string): Promise<string> {
    return this.#take(await this.#find(end)).toString("latin1");
  }

  /** All text (latin1) until the other side ends. */
  async rest(): Promise<string> {
    while (!this.#isOver) await this.#nextChange();
    return this.#take(this.#received.length).toString("latin1");
  }

  /** Ends both directions and resolves when the connection is gone. */
  async close(): Promise<void> {
    if (this.socket.destroyed) return;
    const closed = once(this.socket, "close");
    this.socket.destroy();
    await closed;
  }

  async #body({ headers }: Head): Promise<Buffer> {
    const length = headers["content-length"];
    if (headers["transfer-encoding"] === "chunked") return this.#chunks();
    if (length === undefined) return Buffer.from(await this.rest(), "latin1");
    while (this.#received.length < Number(length)) await this.#more();
    return this.#take(Number(length));
  }

  async #chunks(): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for (;;) {
      const length = Number.parseInt(await this.until("\r\n"), 16);
      while (this.#received.length < length + 2) await this.#more();
      chunks.push(this.#take(length));
      this.#take(2);
      if (length === 0) return Buffer.concat(chunks);
    }
  }

  async #find(end: string): Promise<number> {
    for (;;) {
      const at = this.#received.indexOf(end, 0, "latin1");
      if (at !== -1) return at + end.length;
      await this.#more();
    }
  }

  async #more(): Promise<void> {
    if (this.#isOver) throw new Error(`the connection ended; it had said: ${JSON.stringify(this.#received.toString("latin1", 0, 500))}`);
    await this.#nextChange();
  }

  #take(length: number): Buffer {
    const taken = this.#received.subarray(0, length);
    this.#received = this.#received.subarray(length);
    return taken;
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => this.#changed.push(resolve));
  }

  #tellChange(): void {
    for (const resolve of this.#changed.splice(0)) resolve();
  }
}

/** Lets a server listen and connects to it; both are gone after the test. */
export async function connectionTo<Request extends typeof IncomingMessage>(
  context: TestContext,
  server: Server<Request, typeof ServerResponse>,
): Promise<RawConnection> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const connection = await RawConnection.open((server.address() as AddressInfo).port);
  context.after(async () => {
    await connection.close();
    server.close();
  });
  return connection;
}
