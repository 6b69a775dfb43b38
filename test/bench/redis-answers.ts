const DOLLAR = "$".charCodeAt(0);
const MINUS = "-".charCodeAt(0);
const LINE_END = Buffer.from("\r\n");

/** A command of Redis as it is sent. */
export function commandOf(...words: readonly string[]): Buffer {
  return Buffer.from(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
}

/** The answers of Redis on a connection, one at a time: a line, or a line with a length and so many bytes. */
export class RedisAnswers {
  /** Of the last whole answer: 200, or 500 when it is an error. */
  status = 0;
  wireBytes = 0;
  /** The first line. */
  head = "";
  #parts: Buffer[] = [];

  /** All answers end the same way. */
  expect(): void {}

  /** Whether an answer is whole with `chunk`. */
  take(chunk: Buffer): boolean {
    const received = this.#parts.length === 0 ? chunk : Buffer.concat([...this.#parts, chunk]);
    const end = received.indexOf(LINE_END);
    const wireBytes =
      end + LINE_END.length + (received[0] === DOLLAR ? Math.max(0, Number(received.toString("latin1", 1, end))) + LINE_END.length : 0);
    if (end === -1 || received.length < wireBytes) {
      this.#parts.push(Buffer.from(chunk));
      return false;
    }
    if (this.#parts.length > 0) this.#parts = [];
    this.head = received.toString("latin1", 0, end);
    this.status = received[0] === MINUS ? 500 : 200;
    this.wireBytes = wireBytes;
    return true;
  }
}
