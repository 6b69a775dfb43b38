import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { NatsCluster } from "../nats/nats-cluster.js";

/** How many front ends, by what CONFORMANCE_OVER may be. */
const FRONT_ENDS: Readonly<Record<string, number>> = { nats: 1, "nats-two": 2 };

/** The client's tests append more at once than a message may have by default. */
const MORE = "max_payload: 8MB";

/** Three NATS servers that keep the streams. */
export class Cluster {
  readonly #servers: NatsCluster;
  readonly frontEnds: number;
  /** Where the client of NATS is found. */
  readonly folder = fileURLToPath(new URL("../nats/", import.meta.url));
  readonly flags: readonly string[];

  private constructor(servers: NatsCluster, frontEnds: number) {
    this.#servers = servers;
    this.frontEnds = frontEnds;
    this.flags = ["--storage", servers.storageOf(`c${randomBytes(5).toString("hex")}`)];
  }

  /** What CONFORMANCE_OVER asks for; `null` where streams are kept in a directory. */
  static async asked(): Promise<Cluster | null> {
    const frontEnds = FRONT_ENDS[process.env["CONFORMANCE_OVER"] ?? ""];
    return frontEnds === undefined ? null : new Cluster(await NatsCluster.start({ size: 3, more: MORE }), frontEnds);
  }

  /** Ends them and removes what they have. */
  stop(): Promise<void> {
    return this.#servers.stop();
  }
}
