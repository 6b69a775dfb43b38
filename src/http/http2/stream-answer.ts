import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Outbound } from "../node/message.js";
import { NO_ERROR } from "./codes.js";
import type { StreamLine } from "./stream-line.js";

/**
 * Most bytes that are written to a stream at once. A write counts as taken only when all of it is, and a client that
 * slowly reads a large answer must not seem to stand still.
 */
const SLICE_BYTES = 32 * 1024;

/** For the many answers that never have anything to wait. */
const NOTHING: Buffer[] = [];

const WITHOUT_BODY = { endStream: true } as const;

/** The names of headers as HTTP/2 writes them: there are only those that answers have. */
const LOWER_CASE = new Map<string, string>();

function lowerCase(name: string): string {
  let found = LOWER_CASE.get(name);
  if (found === undefined) LOWER_CASE.set(name, (found = name.toLowerCase()));
  return found;
}

/** What is wrong with a stream ends that stream: `close` follows. */
function ignore(): void {}

/** An answer that goes out on a stream of HTTP/2. */
export class StreamAnswer implements Outbound {
  /** HTTP/2 ends connections by other means. */
  shouldKeepAlive = true;
  /** Called when the client has ended its side of the connection. */
  onClientEnd: (() => void) | null = null;
  readonly #stream: ServerHttp2Stream;
  readonly #line: StreamLine;
  readonly #isToHead: boolean;
  /** What waits for its turn to be written. */
  #queue: Buffer[] = NOTHING;
  #onDrain: (() => void) | null = null;
  #isEnded = false;
  #isRestRefused = false;
  #head: OutgoingHttpHeaders | null = null;

  /** `isToHead`: it answers a HEAD, so that its body is left out. */
  constructor(stream: ServerHttp2Stream, line: StreamLine, isToHead: boolean) {
    this.#isToHead = isToHead;
    this.#stream = stream;
    this.#line = line;
    stream.on("error", ignore);
  }

  /** Its own listener of `drain` is the last that was set. */
  on(event: "close" | "drain", listener: () => void): void {
    if (event === "close") return void this.#stream.on("close", listener);
    if (this.#onDrain === null) this.#stream.on("drain", () => this.#drained());
    this.#onDrain = listener;
  }

  once(event: "close", listener: () => void): void {
    this.#stream.once(event, listener);
  }

  #drained(): void {
    if (this.#queue.length === 0) this.#onDrain?.();
  }

  get headersSent(): boolean {
    return this.#stream.headersSent || this.#head !== null;
  }

  get destroyed(): boolean {
    return this.#line.destroyed;
  }

  get writable(): boolean {
    return this.#line.writable && !this.#isEnded;
  }

  /** Whether all of it is written, though perhaps not sent. */
  get writableEnded(): boolean {
    return this.#isEnded;
  }

  /** `headers`: names and values in turn. Names may be repeated. */
  writeHead(status: number, headers: readonly string[]): void {
    const head: OutgoingHttpHeaders = { ":status": status };
    for (let at = 0; at + 1 < headers.length; at += 2) {
      const name = lowerCase(headers[at] ?? "");
      const value = headers[at + 1] ?? "";
      const before = head[name];
      // A list of several headers and one header with the list mean the same (RFC 9110, 5.3).
      head[name] = before === undefined ? value : `${String(before)}, ${value}`;
    }
    this.#head = head;
  }

  /** Sends the head; with `isAll` it is the whole answer. */
  #sendHead(isAll: boolean): void {
    const head = this.#head;
    this.#head = null;
    if (head !== null && !this.destroyed) this.#stream.respond(head, isAll ? WITHOUT_BODY : undefined);
  }

  write(chunk: Buffer): boolean {
    if (this.#head !== null) {
      this.#sendHead(false);
      if (!this.#stream.writable) return false;
    }
    if (this.#queue.length === 0 && chunk.length <= SLICE_BYTES) return this.#stream.write(chunk);
    this.#enqueue(chunk);
    return false;
  }

  end(chunk?: Buffer): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const hasBody = chunk !== undefined && chunk.length > 0 && !this.#isToHead;
    this.#sendHead(!hasBody);
    // Node has ended its side already where it answers a HEAD.
    if (this.#stream.writable) this.#sendRest(hasBody ? chunk : null);
    this.#closeAfterEnd();
  }

  #sendRest(chunk: Buffer | null): void {
    if (chunk !== null && (this.#queue.length > 0 || chunk.length > SLICE_BYTES)) this.#enqueue(chunk);
    else if (chunk !== null) this.#stream.end(chunk);
    else if (this.#queue.length === 0) this.#stream.end();
  }

  /** Ends it although the client still sends its body, of which nothing more is read (RFC 9113, 8.1). */
  endEarly(chunk: Buffer): void {
    this.refuseRest();
    this.end(chunk);
  }

  /** The end of the answer is that of the stream, whatever the client still sends. */
  refuseRest(): void {
    this.#isRestRefused = true;
  }

  #closeAfterEnd(): void {
    if (!this.#isRestRefused || this.destroyed) return;
    const close = (): void => this.#stream.close(NO_ERROR);
    // The head of an answer to HEAD leaves at the end of the turn; a reset would overtake it.
    if (this.#stream.writableFinished) setImmediate(close);
    else this.#stream.once("finish", close);
  }

  #enqueue(chunk: Buffer): void {
    const isFirst = this.#queue.length === 0;
    if (this.#queue === NOTHING) {
      this.#queue = [];
      this.#stream.on("close", () => this.#drop());
    }
    for (let at = 0; at < chunk.length; at += SLICE_BYTES) this.#queue.push(chunk.subarray(at, at + SLICE_BYTES));
    this.#line.queuedBytes += chunk.length;
    if (isFirst) this.#writeNext();
  }

  #drop(): void {
    this.#queue = [];
    this.#line.queuedBytes = 0;
  }

  #writeNext(): void {
    const [slice] = this.#queue;
    if (slice === undefined) return;
    this.#stream.write(slice, () => {
      if (this.#queue.length === 0) return;
      this.#queue.shift();
      this.#line.queuedBytes -= slice.length;
      if (this.#queue.length > 0) this.#writeNext();
      else if (this.#isEnded) this.#stream.end();
      else this.#onDrain?.();
    });
  }

  writeContinue(): void {
    if (!this.destroyed && !this.headersSent) this.#stream.additionalHeaders({ ":status": 100 });
  }
}
