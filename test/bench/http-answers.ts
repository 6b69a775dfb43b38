const HEAD_END = Buffer.from("\r\n\r\n");
/** An empty chunk, which is the last one, behind the line end of the head or of the chunk before. */
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");
const FIRST_OF_HEAD = "H".charCodeAt(0);

/**
 * The answers that come on a connection, one at a time, told apart by their length, or by their last chunk: no body of
 * the benchmark looks like one.
 */
export class HttpAnswers {
  /** Of the last whole answer, like its length on the wire and its head. */
  status = 0;
  wireBytes = 0;
  head = "";
  /** What has come of the head under way. */
  #parts: Buffer[] = [];
  #receivedBytes = 0;
  /** How long the answer under way is on the wire; 0 while the head is not whole, `null` when it is in chunks. */
  #wantedBytes: number | null = 0;
  /** The end of what has come of an answer in chunks. */
  #last: Buffer = Buffer.alloc(0);
  #hasBody = true;

  /** The answer to `request` is next: that to a HEAD has a length, but no body. */
  expect(request: Buffer): void {
    this.#hasBody = request[0] !== FIRST_OF_HEAD;
  }

  /** Whether an answer is whole with `chunk`. */
  take(chunk: Buffer): boolean {
    this.#receivedBytes += chunk.length;
    if (this.#wantedBytes === 0) this.#readHead(chunk);
    else if (this.#wantedBytes === null) this.#last = Buffer.concat([this.#last, chunk]).subarray(-LAST_CHUNK.length);
    if (!this.#isWhole()) return false;
    this.wireBytes = this.#receivedBytes;
    this.#wantedBytes = 0;
    this.#receivedBytes = 0;
    return true;
  }

  #isWhole(): boolean {
    if (this.#wantedBytes === null) return this.#last.equals(LAST_CHUNK);
    return this.#wantedBytes > 0 && this.#receivedBytes >= this.#wantedBytes;
  }

  /** Only the head is kept until it is whole; of the body, the length is enough. */
  #readHead(chunk: Buffer): void {
    const received = this.#parts.length === 0 ? chunk : Buffer.concat([...this.#parts, chunk]);
    const end = received.indexOf(HEAD_END);
    if (end === -1) return void this.#parts.push(Buffer.from(chunk));
    if (this.#parts.length > 0) this.#parts = [];
    this.head = received.toString("latin1", 0, end + 2);
    this.status = Number(this.head.slice(9, 12));
    const bodyBytes = this.#bodyBytes();
    this.#wantedBytes = bodyBytes === null ? null : end + HEAD_END.length + bodyBytes;
    // From the line end that the first chunk has before it.
    if (bodyBytes === null) this.#last = Buffer.from(received.subarray(end + 2).subarray(-LAST_CHUNK.length));
  }

  /** `null` when it comes in chunks. */
  #bodyBytes(): number | null {
    if (!this.#hasBody || this.status === 204 || this.status === 304) return 0;
    const length = titledField(this.head, "Content-Length") ?? fieldOf(this.head, "content-length");
    if (length !== null) return Number(length);
    if (fieldOf(this.head, "transfer-encoding") !== "chunked") throw new Error(`an answer without a length:\n${this.head}`);
    return null;
  }
}

/** The value of a field of `head`, by its name in lower case; `null` when it is not there. */
export function fieldOf(head: string, name: string): string | null {
  return valueAt(head, head.toLowerCase().indexOf(`\r\n${name}: `), name);
}

/** The same by the name as it is sent: to make a head lower case takes longer than all else here. */
function titledField(head: string, name: string): string | null {
  return valueAt(head, head.indexOf(`\r\n${name}: `), name);
}

function valueAt(head: string, at: number, name: string): string | null {
  if (at === -1) return null;
  const from = at + name.length + 4;
  return head.slice(from, head.indexOf("\r\n", from));
}
