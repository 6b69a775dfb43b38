import type { StoredMessage } from "./raw-cluster.js";

/** Messages of a bucket's shards, and how many of them do not follow the one that they were published behind. */
export interface Chains {
  readonly messages: number;
  readonly broken: readonly string[];
}

/** Looks at each message of each subject: the last sequence that its publisher expected is that of the one before. */
export async function chainsOf(all: Iterable<AsyncIterable<StoredMessage>>): Promise<Chains> {
  let messages = 0;
  const broken: string[] = [];
  for (const ofStream of all) {
    const lastOf = new Map<string, number>();
    for await (const { subject, sequence, expected } of ofStream) {
      messages += 1;
      const before = lastOf.get(subject);
      // What came before the first may have been purged.
      if (before !== undefined && expected !== before) broken.push(`${subject}: ${sequence} expected ${expected}, and follows ${before}`);
      lastOf.set(subject, sequence);
    }
  }
  return { messages, broken };
}
