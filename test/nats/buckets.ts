import { randomBytes } from "node:crypto";
import { parseStorage, type NatsAddress } from "../../src/net/storage-address.js";
import type { NatsCluster } from "./nats-cluster.js";

/** The name of a bucket that nobody has. */
export function newBucket(): string {
  return `t${randomBytes(5).toString("hex")}`;
}

/** The address of a bucket, as the engine takes it. */
export function addressOf(cluster: NatsCluster, query = "", bucket = newBucket()): NatsAddress {
  return parsed(cluster.storageOf(bucket, query));
}

/** What `--storage` says, as the engine takes it. */
export function parsed(text: string): NatsAddress {
  const address = parseStorage(text);
  if (address?.kind !== "nats") throw new RangeError(`${text} is no address of a cluster`);
  return address;
}
