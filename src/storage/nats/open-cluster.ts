import type { Clock } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import type { NatsAddress } from "../../net/storage-address.js";
import type { StorageObserver } from "../figures.js";
import { ClusterStorage } from "./cluster-storage.js";
import { openBucket } from "./jetstream/bucket.js";
import { ClusterConnection } from "./jetstream/connection.js";
import { JetStreamLog } from "./jetstream/jetstream-log.js";
import { loadNatsClient, type NatsClient } from "./client/nats-client.js";

export { ClusterUnusableError } from "./client/nats-client.js";

/** How a cluster is opened. */
export interface OpenClusterOptions {
  readonly address: NatsAddress;
  /** A file to sign in with; empty for none. */
  readonly credsFile: string;
  /** How long a change is sent again while nobody can say what became of it. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer?: StorageObserver;
  /** The client of NATS; the one that is installed when absent. */
  readonly client?: NatsClient;
}

/** Memory for the newest messages of streams in use. */
const CACHE_BYTES = 64 * 1024 * 1024;

/** How long requests wait for the next leader of a shard: an election takes 4 to 12 seconds. */
const LEADER_PATIENCE_MS = 15_000;

/** A start that takes longer says what it waits for. */
const SILENT_MS = 2000;

/** Opens the engine on a bucket of a NATS cluster. Throws ClusterUnusableError. */
export async function openCluster(options: OpenClusterOptions): Promise<ClusterStorage> {
  const { clock, log } = options;
  let fault = "no server has answered yet";
  let told: string | null = null;
  const tell = (): void => {
    if (told !== fault) log.warn("waiting for the NATS servers", { fault });
    told = fault;
  };
  const waiting = clock.after(SILENT_MS, tell);
  try {
    return await open(options, (why) => {
      fault = why;
      if (told !== null) tell();
    });
  } finally {
    waiting.cancel();
  }
}

/** `onWait` is told what is waited for. */
async function open(options: OpenClusterOptions, onWait: (why: string) => void): Promise<ClusterStorage> {
  const { address, credsFile, timeoutMs, clock, log } = options;
  const client = options.client ?? (await loadNatsClient());
  const connection = await ClusterConnection.open({ address, credsFile, client, clock, log });
  try {
    const bucket = await openBucket(connection.requests, address, clock, onWait);
    const { maxPayloadBytes } = connection;
    const { replicas, shards, isNew } = bucket;
    if (isNew) log.info("a new bucket was made", { bucket: address.bucket, shards: shards.length, replicas });
    log.info("the NATS cluster is open", { bucket: address.bucket, shards: shards.length, replicas, maxPayloadBytes });
    if (replicas === 1) log.warn("each message is on one NATS server only: what that server loses is lost");
    const jetstream = new JetStreamLog(connection, bucket, clock, Math.min(LEADER_PATIENCE_MS, timeoutMs), log);
    return new ClusterStorage({
      log: jetstream,
      subjects: bucket.subjects,
      clock,
      notices: log,
      cacheBytes: CACHE_BYTES,
      timeoutMs,
      ...(options.observer === undefined ? {} : { observer: options.observer }),
    });
  } catch (fault) {
    await connection.close();
    throw fault;
  }
}
