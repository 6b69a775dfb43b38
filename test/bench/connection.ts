import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** What a connection tells of an answer: its status and its length on the wire. */
export type Answered = (status: number, wireBytes: number) => void;

const HEAD_END = Buffer.from("\r\n\r\n");

/** One keep-alive connection that sends a request whenever the last one is answered, and costs the machine little. */
export class Connection {
  readonly #socket: Socket;
  readonly #answered: Answered;
  /** What has come of the answer under way. */
  #parts: Buffer[] = [];
  #receivedBytes = 0;
  /** How long the answer is on the wire; 0 while that is not known. */
  #wantedBytes = 0;
  #status = 0;

  static async open(port: number, answered: Answered, failed: (error: Error) => void): Promise<Connection> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    return new Connection(socket, answered, failed);
  }

  private constructor(socket: Socket, answered: Answered, failed: (error: Error) => void) {
    this.#socket = socket;
    this.#answered = answered;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", failed);
    socket.on("end", () => failed(new Error("the server closed a connection")));
  }

  send(request: Buffer): void {
    this.#socket.write(request);
  }

  close(): void {
    this.#socket.removeAllListeners("end");
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#receivedBytes += chunk.length;
    if (this.#wantedBytes === 0) this.#readHead(chunk);
    if (this.#wantedBytes === 0 || this.#receivedBytes < this.#wantedBytes) return;
    const wireBytes = this.#wantedBytes;
    this.#wantedBytes = 0;
    this.#receivedBytes = 0;
    this.#answered(this.#status, wireBytes);
  }

  /** Only the head is kept until it is whole; of the body, the length is enough. */
  #readHead(chunk: Buffer): void {
    this.#parts.push(chunk);
    const received = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts);
    const end = received.indexOf(HEAD_END);
    if (end === -1) return;
    const head = received.toString("latin1", 0, end + 2);
    this.#parts = [];
    this.#status = Number(head.slice(9, 12));
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length === undefined && this.#status !== 204 && this.#status !== 304) throw new Error(`an answer without a length:\n${head}`);
    this.#wantedBytes = end + HEAD_END.length + Number(length ?? 0);
  }
}
