/** What a producer says of itself. */
export interface Stamp {
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
}

/** An append or a close as its request says it. */
export interface ModelAppend {
  readonly contentType: string | null;
  /** The messages of a JSON body, or `null` where that is none; nothing for other bodies. */
  readonly messages: readonly unknown[] | null;
  readonly body: Buffer;
  readonly closes: boolean;
  readonly producer: Stamp | null;
  readonly seq: string | null;
}

/** What an answer says. What is absent is not looked at. */
export interface Expected {
  /** `refused` is any status from 400 on that is not the server's fault. */
  readonly status: number | "refused";
  readonly code?: string;
  /** Where `Stream-Next-Offset` is: bytes, or messages of a JSON stream. */
  readonly position?: number;
  readonly closed?: boolean;
  readonly contentType?: string;
  readonly body?: Buffer;
  /** The body as JSON. */
  readonly values?: readonly unknown[];
  readonly producer?: { readonly epoch: number; readonly seq: number | null };
  readonly gap?: { readonly expected: number; readonly received: number };
}

/** One stream as the protocol describes it, written without a look at the server's code. */
export class ModelStream {
  readonly contentType: string;
  readonly #producers = new Map<string, { epoch: number; seq: number }>();
  #bytes = Buffer.alloc(0);
  #messages: unknown[] = [];
  #lastSeq: string | null = null;
  #closedBy: Stamp | null = null;
  closed = false;
  /** The token of each position, and the ETag of each read, as the server gave them out. */
  readonly tokens = new Map<number, string>();
  readonly etags = new Map<string, string>();

  constructor(contentType: string) {
    this.contentType = contentType;
  }

  get isJson(): boolean {
    return this.contentType === "application/json";
  }

  /** Bytes, or messages of a JSON stream. */
  get tail(): number {
    return this.isJson ? this.#messages.length : this.#bytes.length;
  }

  /** What the stream holds from a position on. */
  from(position: number): Pick<Expected, "body" | "values"> {
    return this.isJson ? { values: this.#messages.slice(position) } : { body: this.#bytes.subarray(position) };
  }

  /** A read from a position on. */
  read(position: number): Expected {
    return { status: 200, position: this.tail, closed: this.closed, contentType: this.contentType, ...this.from(position) };
  }

  /** Stores what the checks have let through. */
  store({ body, messages, closes, producer, seq }: ModelAppend): void {
    if (this.isJson) this.#messages.push(...(messages ?? []));
    else this.#bytes = Buffer.concat([this.#bytes, body]);
    if (closes) this.closed = true;
    if (closes) this.#closedBy = producer;
    if (producer !== null) this.#producers.set(producer.id, { epoch: producer.epoch, seq: producer.seq });
    if (seq !== null) this.#lastSeq = seq;
  }

  /** An append or a close: the order of the checks is the protocol's. */
  append(request: ModelAppend): Expected {
    const hasData = request.body.length > 0;
    if (!hasData && !request.closes) return { status: 400, code: "empty-body" };
    if (this.closed) return this.#appendToClosed(request, hasData);
    const refusal = (hasData ? this.#judgeBody(request) : null) ?? this.#judgeProducer(request.producer);
    if (refusal !== null) return refusal;
    if (request.seq !== null && this.#lastSeq !== null && request.seq <= this.#lastSeq)
      return { status: 409, code: "stream-seq-regression" };
    this.store(request);
    return { ...this.#settled(), status: request.producer !== null && hasData ? 200 : 204, ...echo(request.producer) };
  }

  #appendToClosed({ producer }: ModelAppend, hasData: boolean): Expected {
    const by = this.#closedBy;
    const isTheCloser = producer !== null && by !== null && producer.id === by.id && producer.epoch === by.epoch && producer.seq === by.seq;
    if (hasData && !isTheCloser) return { status: 409, code: "stream-closed", position: this.tail, closed: true };
    return { ...this.#settled(), ...echo(producer === null ? null : (this.#producers.get(producer.id) ?? producer)) };
  }

  #settled(): Expected {
    return { status: 204, position: this.tail, closed: this.closed };
  }

  #judgeBody({ contentType, messages }: ModelAppend): Expected | null {
    if (contentType === null) return { status: 400, code: "content-type-missing" };
    if (contentType !== this.contentType) return { status: 409, code: "content-type-mismatch" };
    if (!this.isJson) return null;
    if (messages === null) return { status: 400, code: "invalid-json" };
    return messages.length === 0 ? { status: 400, code: "empty-json-array" } : null;
  }

  #judgeProducer(stamp: Stamp | null): Expected | null {
    if (stamp === null) return null;
    const last = this.#producers.get(stamp.id);
    if (last !== undefined && stamp.epoch < last.epoch)
      return { status: 403, code: "stale-epoch", producer: { epoch: last.epoch, seq: null } };
    const isNewEpoch = last === undefined || stamp.epoch > last.epoch;
    if (last !== undefined && isNewEpoch && stamp.seq !== 0) return { status: 400, code: "epoch-must-start-at-zero" };
    if (last !== undefined && !isNewEpoch && stamp.seq <= last.seq) return { ...this.#settled(), producer: last };
    const expected = isNewEpoch ? 0 : last.seq + 1;
    return stamp.seq === expected ? null : { status: 409, code: "producer-gap", gap: { expected, received: stamp.seq } };
  }
}

function echo(producer: { readonly epoch: number; readonly seq: number } | null): Pick<Expected, "producer"> {
  return producer === null ? {} : { producer };
}

/** The streams of one client, which nobody else touches. */
export class Model {
  readonly names: readonly string[];
  readonly #streams = new Map<string, ModelStream>();

  constructor(names: readonly string[]) {
    this.names = names;
  }

  get(name: string): ModelStream | undefined {
    return this.#streams.get(name);
  }

  create(name: string, request: ModelAppend): Expected {
    const contentType = request.contentType ?? "application/octet-stream";
    const there = this.#streams.get(name);
    if (there !== undefined) {
      if (there.contentType !== contentType || there.closed !== request.closes) return { status: 409, code: "config-mismatch" };
      return { status: 200, position: there.tail, closed: there.closed, contentType };
    }
    if (contentType === "application/json" && request.body.length > 0 && request.messages === null)
      return { status: 400, code: "invalid-json" };
    const stream = new ModelStream(contentType);
    stream.store(request);
    this.#streams.set(name, stream);
    return { status: 201, position: stream.tail, closed: stream.closed, contentType };
  }

  append(name: string, request: ModelAppend): Expected {
    return this.#streams.get(name)?.append(request) ?? { status: 404, code: "stream-not-found" };
  }

  delete(name: string): Expected {
    return this.#streams.delete(name) ? { status: 204 } : { status: 404, code: "stream-not-found" };
  }
}
