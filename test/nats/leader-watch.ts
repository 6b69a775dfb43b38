import { majorityAgoMs } from "../../src/storage/nats/jetstream/answers.js";
import { pause } from "./load/fronts.js";
import { RawCluster } from "./raw-cluster.js";

const LOOK_MS = 200;
/** A leader that a majority was behind less than an election ago. */
const LED_MS = 4000;
const COPIES = 3;

/** Sees for how long JetStream streams have no leader: nobody can write to them then, whatever a front end does. */
export class LeaderWatch {
  readonly #clusters: readonly RawCluster[];
  readonly #looking: Promise<unknown>;
  #longestMs = 0;
  #isOver = false;

  private constructor(clusters: readonly RawCluster[], streams: readonly string[]) {
    this.#clusters = clusters;
    this.#looking = Promise.all(streams.map((stream) => this.#look(stream)));
  }

  /** Looks by a connection to each server: one of them may be cut off. */
  static async begin(servers: readonly string[], streams: readonly string[]): Promise<LeaderWatch> {
    return new LeaderWatch(await Promise.all(servers.map((server) => RawCluster.connect([server]))), streams);
  }

  /** The longest time that one of the streams had none. */
  async end(): Promise<number> {
    this.#isOver = true;
    await this.#looking;
    await Promise.all(this.#clusters.map((cluster) => cluster.close()));
    return this.#longestMs;
  }

  async #look(stream: string): Promise<void> {
    for (let ledAtMs = performance.now(); !this.#isOver; await pause(LOOK_MS)) {
      const isLed = await this.#isLed(stream);
      const nowMs = performance.now();
      this.#longestMs = Math.max(this.#longestMs, nowMs - ledAtMs);
      if (isLed) ledAtMs = nowMs;
    }
  }

  /** The first server that knows of a leader says so; the others may not answer. */
  async #isLed(stream: string): Promise<boolean> {
    const asked = this.#clusters.map(async (cluster) => {
      const info = await cluster.call(`STREAM.INFO.${stream}`, {});
      const agoMs = info === null ? null : majorityAgoMs(info, COPIES);
      if (agoMs === null || agoMs > LED_MS) throw new Error(`${stream} has no leader`);
    });
    return Promise.any(asked).then(
      () => true,
      () => false,
    );
  }
}
