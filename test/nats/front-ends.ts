import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { systemClock, type Clock, type Timer } from "../../src/ops/clock.js";
import { createServer, type RunningServer, type ServerOptions } from "../../src/server.js";
import { keptLog } from "../helpers/engine.js";
import { newBucket } from "./buckets.js";
import type { NatsCluster } from "./nats-cluster.js";

/** The system's clock, which a test can put forward. */
export class ForwardClock implements Clock {
  readonly #clock = systemClock();
  aheadMs = 0;

  nowMs(): number {
    return this.#clock.nowMs() + this.aheadMs;
  }

  after(delayMs: number, run: () => void): Timer {
    return this.#clock.after(delayMs, run);
  }
}

/** A request's parts. */
export interface Parts {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** What was answered, with its whole body. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** A server of streams on a cluster. */
export class FrontEnd {
  readonly #server: RunningServer;

  constructor(server: RunningServer) {
    this.#server = server;
  }

  /** The address of a stream of that name, or of what begins with `__ds/`. */
  urlOf(target: string): string {
    return `http://127.0.0.1:${this.#server.port}/v1/stream/${target}`;
  }

  /** Sends a request and takes its whole answer; a body is text unless a header says otherwise. */
  async send(method: string, target: string, { headers = {}, body }: Parts = {}): Promise<Answered> {
    const all = { ...(body === undefined && method !== "PUT" ? {} : { "Content-Type": "text/plain" }), ...headers };
    const response = await fetch(this.urlOf(target), { method, headers: all, body: body ?? null });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  /** Sends a request and holds its answer to a status. */
  async expect(status: number, method: string, target: string, parts: Parts = {}): Promise<Answered> {
    const answered = await this.send(method, target, parts);
    assert.equal(answered.status, status, `${method} ${target}: ${answered.text}`);
    return answered;
  }

  /** Follows events; those that have come are whole. */
  async follow(t: TestContext, target: string): Promise<Events> {
    const response = await fetch(this.urlOf(target));
    assert.equal(response.status, 200);
    assert.ok(response.body !== null);
    const events = new Events(response.body);
    t.after(() => events.leave());
    return events;
  }
}

/** Events of an answer, as they come. */
export class Events {
  readonly #reader: ReadableStreamDefaultReader<string>;
  #text = "";

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  }

  /** All that has come, once that matches. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#text)) {
      const { done, value } = await this.#reader.read();
      if (done) throw new Error(`the events have ended, and are:\n${this.#text}`);
      this.#text += value;
    }
    return this.#text;
  }

  /** All that comes until they end. */
  async toEnd(): Promise<string> {
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return this.#text;
      this.#text += value;
    }
  }

  leave(): Promise<void> {
    return this.#reader.cancel();
  }
}

/** Starts servers on one bucket, a new one where none is named. They are gone when the test is over. */
export async function startFrontEnds(
  t: { after(run: () => Promise<void>): void },
  cluster: NatsCluster,
  count: number,
  options: Partial<ServerOptions> & { readonly bucket?: string; readonly query?: string } = {},
): Promise<readonly FrontEnd[]> {
  const { bucket = newBucket(), query = "?shards=2", ...more } = options;
  const storage = cluster.storageOf(bucket, query);
  const begun: FrontEnd[] = [];
  for (let index = 0; index < count; index += 1) {
    const server = await createServer({ port: 0, insecure: true, log: keptLog().log, storage, ...more });
    t.after(() => server.close());
    begun.push(new FrontEnd(server));
  }
  return begun;
}

/** Two servers on one bucket. */
export async function startTwo(
  t: TestContext,
  cluster: NatsCluster,
  options: Parameters<typeof startFrontEnds>[3] = {},
): Promise<readonly [FrontEnd, FrontEnd]> {
  const [one, other] = await startFrontEnds(t, cluster, 2, options);
  assert.ok(one !== undefined && other !== undefined);
  return [one, other];
}
