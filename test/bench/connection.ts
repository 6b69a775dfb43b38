import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** An answer that has come to its end. */
export interface WholeAnswer {
  readonly status: number;
  readonly wireBytes: number;
  readonly head: string;
}

/** Tells where an answer ends, and is the last one that did. */
export interface Answers extends WholeAnswer {
  expect(request: Buffer): void;
  /** What of `chunk` is still needed has to be copied: its memory is used again. */
  take(chunk: Buffer): boolean;
}

/** What a connection tells of an answer: its status, its length on the wire and, where the protocol has one, its head. */
export type Answered = (status: number, wireBytes: number, head: string) => void;

/** What comes on a connection is looked at before anything else comes: one piece of memory does for all. */
const RECEIVED = Buffer.allocUnsafeSlow(256 * 1024);

/** One keep-alive connection that sends a request whenever the last one is answered, and costs the machine little. */
export class Connection {
  readonly #socket: Socket;
  readonly #answers: Answers;

  static async open(port: number, answers: Answers, answered: Answered, failed: (error: Error) => void): Promise<Connection> {
    const callback = (bytes: number): boolean => {
      if (answers.take(RECEIVED.subarray(0, bytes))) answered(answers.status, answers.wireBytes, answers.head);
      return true;
    };
    const socket = connect({ port, host: "127.0.0.1", noDelay: true, onread: { buffer: RECEIVED, callback } });
    await once(socket, "connect");
    return new Connection(socket, answers, failed);
  }

  private constructor(socket: Socket, answers: Answers, failed: (error: Error) => void) {
    this.#socket = socket;
    this.#answers = answers;
    socket.on("error", failed);
    socket.on("end", () => failed(new Error("the server closed a connection")));
  }

  send(request: Buffer): void {
    this.#answers.expect(request);
    this.#socket.write(request);
  }

  close(): void {
    this.#socket.removeAllListeners("end");
    this.#socket.destroy();
  }
}

/** A connection on which each request is waited for. */
export interface Dialogue {
  /** Rejects when the connection ends before the answer. */
  ask(request: Buffer): Promise<WholeAnswer>;
  close(): void;
}

/** Opens a {@link Dialogue}. */
export async function openDialogue(port: number, answers: Answers): Promise<Dialogue> {
  let settle: { resolve(answer: WholeAnswer): void; reject(error: Error): void } | null = null;
  const answered: Answered = (status, wireBytes, head) => settle?.resolve({ status, wireBytes, head });
  const connection = await Connection.open(port, answers, answered, (error) => settle?.reject(error));
  const ask = (request: Buffer): Promise<WholeAnswer> =>
    new Promise((resolve, reject) => {
      settle = { resolve, reject };
      connection.send(request);
    });
  return { ask, close: () => connection.close() };
}
