import { sequenceOf, type RawCluster } from "./raw-cluster.js";

/** Messages of a bucket's shards, and how many of them do not follow the one that they were published behind. */
export interface Chains {
  readonly messages: number;
  readonly broken: readonly string[];
}

/** Looks at each message of each subject: the last sequence that its publisher expected is that of the one before. */
export async function chainsOf(cluster: RawCluster, streams: readonly string[], filter: string): Promise<Chains> {
  let messages = 0;
  const broken: string[] = [];
  for (const stream of streams) {
    const lastOf = new Map<string, number>();
    for await (const message of cluster.messages(stream, filter)) {
      messages += 1;
      const subject = message.headers?.get("Nats-Subject") ?? "";
      const expected = Number(message.headers?.get("Nats-Expected-Last-Subject-Sequence"));
      const before = lastOf.get(subject);
      // What came before the first may have been purged.
      if (before !== undefined && expected !== before)
        broken.push(`${subject}: ${sequenceOf(message)} expected ${expected}, and follows ${before}`);
      lastOf.set(subject, sequenceOf(message));
    }
  }
  return { messages, broken };
}
