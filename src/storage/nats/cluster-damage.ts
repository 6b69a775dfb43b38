import type { Log } from "../../ops/log.js";
import { DamageFindings } from "../damage-findings.js";
import type { DamagedRejection, Settlement } from "../storage.js";
import type { ClusterStream } from "./memory/cluster-stream.js";
import type { StateReader } from "./reading/state-reader.js";

/** Forks of a damaged stream that are named. */
const MAX_NAMED = 10;

/** Publishes the tombstone of a stream, and drops its bytes. */
type Delete = (stream: ClusterStream, settle: (how: Settlement) => void) => void;

/** Streams that lack messages which they need: says so once in the log, and gets them out of the way. */
export class ClusterDamage extends DamageFindings {
  readonly #notices: Log;
  readonly #states: StateReader;
  readonly #delete: Delete;

  /** `notices` is the server's log. */
  constructor(notices: Log, states: StateReader, remove: Delete) {
    super(notices);
    this.#notices = notices;
    this.#states = states;
    this.#delete = remove;
  }

  /** Deletes a stream that can't be loaded, unless forks need it. Throws LogUnavailableError. */
  async delete(name: string): Promise<Settlement | DamagedRejection> {
    const stream = await this.#states.loadDamaged(name);
    // Another front end was first: whoever asks looks again.
    if (stream === null) return "tail-moved";
    if (stream.forkCount > 0) return this.#needed(stream);
    const how = await new Promise<Settlement>((resolve) => this.#delete(stream, resolve));
    if (how === "durable") this.forget(name);
    return how;
  }

  async #needed(stream: ClusterStream): Promise<DamagedRejection> {
    const { name, forkCount: count } = stream;
    const forks = JSON.stringify(await this.#states.forkNames(stream, MAX_NAMED));
    this.#notices.warn("a damaged stream is not deleted while forks may need its bytes", {
      stream: name,
      count,
      forks,
    });
    return "needed";
  }
}
