import { appendBytes, creationBytes, Load, quantile } from "./load.js";
import type { ServerUnderLoad } from "./server-under-load.js";

const CONNECTIONS = 8;
const STEP_MS = 250;
const APPEND = appendBytes("/v1/stream/probe");

/** Appends to a stream of its own all the time, and says how long they take. */
export class AppendProbe {
  readonly #load: Load;

  static async open(server: ServerUnderLoad): Promise<AppendProbe> {
    const load = await Load.open(server.port, CONNECTIONS);
    const create = creationBytes("/v1/stream/probe");
    await load.run((index) => (index === 0 ? create : null));
    return new AppendProbe(load);
  }

  private constructor(load: Load) {
    this.#load = load;
  }

  /** The 99th percentile of appends sent for `ms` milliseconds. */
  async p99During(ms: number): Promise<number> {
    return quantile(await this.#latencies(ms), 0.99);
  }

  /** The 99th percentile of appends sent until `isOver`, which is asked between steps; at most `limitMs`. */
  async p99Until(isOver: () => boolean, limitMs: number): Promise<number> {
    const all: number[] = [];
    const startedMs = performance.now();
    while (!isOver()) {
      if (performance.now() - startedMs > limitMs) throw new Error(`it is not over after ${limitMs} ms`);
      for (const latencyMs of await this.#latencies(STEP_MS)) all.push(latencyMs);
    }
    return quantile(
      all.sort((a, b) => a - b),
      0.99,
    );
  }

  close(): void {
    this.#load.close();
  }

  async #latencies(ms: number): Promise<Float64Array> {
    const endMs = performance.now() + ms;
    const { latenciesMs } = await this.#load.run(() => (performance.now() < endMs ? APPEND : null));
    return latenciesMs;
  }
}
