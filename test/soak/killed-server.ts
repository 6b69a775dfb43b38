import assert from "node:assert/strict";
import { assertExactlyOnce, HonestProducer } from "../helpers/honest-producer.js";
import { RealServer } from "../helpers/real-server.js";
import type { TestScope } from "../helpers/process.js";
import { pause } from "../scale/server-under-load.js";

const PRODUCERS = 6;
const PAUSE_MS = 100;
const BYTES = 200;
const SIZES = ["--log-level=warn", "--journal-bytes=1MiB", "--segment-bytes=64KiB"];

/** A server beside the one that is measured: it is killed again and again, while honest producers append to it. */
export class KilledServer {
  readonly #server: RealServer;
  readonly #producers: readonly HonestProducer[];
  #isOver = false;

  constructor(scope: TestScope, dir: string) {
    const server = (this.#server = new RealServer(scope, SIZES, dir));
    this.#producers = Array.from({ length: PRODUCERS }, (_, at) => new HonestProducer(server, `p${at % 2}`, `producer-${at}`));
  }

  get dir(): string {
    return this.#server.dir;
  }

  /** Appends until {@link end}. */
  async run(): Promise<void> {
    await this.#server.start();
    for (const stream of new Set(this.#producers.map((producer) => producer.stream)))
      assert.equal((await this.#server.ask("PUT", stream, { headers: { "Content-Type": "application/json" } })).status, 201);
    await Promise.all(
      this.#producers.map(async (producer) => {
        while (!this.#isOver) {
          await producer.append(BYTES);
          await pause(PAUSE_MS);
        }
      }),
    );
  }

  async kill(): Promise<void> {
    await this.#server.killAndRestart();
  }

  /** Fails unless each append that was acknowledged is there once. */
  async check(): Promise<number> {
    await assertExactlyOnce(this.#server, this.#producers);
    await this.#server.stop();
    await this.#server.verify();
    return this.#producers.reduce((sum, { count }) => sum + count, 0);
  }

  end(): void {
    this.#isOver = true;
  }
}
