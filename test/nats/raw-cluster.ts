import { connect, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { DEFAULT_SHARDS } from "../../src/storage/nats/jetstream/bucket.js";

/** The header that says which message has to be the subject's last. */
export const EXPECTED = "Nats-Expected-Last-Subject-Sequence";

/** Where a message is, and what its publisher expected before it. */
export interface StoredMessage {
  readonly subject: string;
  readonly sequence: number;
  readonly expected: number;
}

/** A connection of a test's own to a cluster, past the engine. */
export class RawCluster {
  readonly #connection: NatsConnection;

  private constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  static async connect(servers: readonly string[]): Promise<RawCluster> {
    return new RawCluster(await connect({ servers: [...servers], maxReconnectAttempts: -1, reconnectTimeWait: 100 }));
  }

  get connection(): NatsConnection {
    return this.#connection;
  }

  /** Asks the API; `null` where nobody answers. */
  async call(subject: string, query: object): Promise<Readonly<Record<string, unknown>> | null> {
    const answer = await this.#connection.request(`$JS.API.${subject}`, JSON.stringify(query), { timeout: 2000 }).catch(() => null);
    return answer === null ? null : (answer.json() as Record<string, unknown>); // as the API has it
  }

  /** The name of the server that leads a JetStream stream; `null` while nobody does. */
  async leaderOf(stream: string): Promise<string | null> {
    const cluster = (await this.call(`STREAM.INFO.${stream}`, {}))?.["cluster"];
    const leader: unknown = typeof cluster === "object" && cluster !== null ? Reflect.get(cluster, "leader") : null;
    return typeof leader === "string" && leader !== "" ? leader : null;
  }

  /** The server that leads most of these JetStream streams, and how many. */
  async leaderOfMost(streams: readonly string[]): Promise<string> {
    const counts = new Map<string, number>();
    for (const leader of await Promise.all(streams.map((stream) => this.leaderOf(stream))))
      if (leader !== null) counts.set(leader, (counts.get(leader) ?? 0) + 1);
    const [first] = [...counts].sort(([, left], [, right]) => right - left);
    if (first === undefined) throw new Error("no JetStream stream has a leader");
    return first[0];
  }

  /** Each message of a filter, by any server that has it. */
  async *messages(stream: string, filter: string): AsyncGenerator<StoredMessage> {
    for (let from = 1; ;) {
      const found = await this.#batch(stream, { seq: from, next_by_subj: filter, batch: 500, max_bytes: 2 ** 20 });
      for (const { headers: its } of found) {
        from = Number(its?.get("Nats-Sequence")) + 1;
        yield { subject: its?.get("Nats-Subject") ?? "", sequence: from - 1, expected: Number(its?.get(EXPECTED)) };
      }
      if (found.length === 0) return;
    }
  }

  /** The same by the leader, one after the other: old servers know no other way. */
  async *messagesOfLeader(stream: string, filter: string): AsyncGenerator<StoredMessage> {
    for (let from = 1; ;) {
      const found = (await this.call(`STREAM.MSG.GET.${stream}`, { seq: from, next_by_subj: filter }))?.["message"];
      if (typeof found !== "object" || found === null) return;
      const { subject, seq, hdrs } = found as { subject: string; seq: number; hdrs: string }; // as the API has it
      const expected = new RegExp(`${EXPECTED}: *(\\d+)`).exec(Buffer.from(hdrs, "base64").toString())?.[1];
      yield { subject, sequence: seq, expected: Number(expected) };
      from = seq + 1;
    }
  }

  #batch(stream: string, query: object): Promise<Msg[]> {
    return new Promise((resolve, reject) => {
      const found: Msg[] = [];
      const inbox = `_INBOX.t${Math.random().toString(36).slice(2)}`;
      const over = (): void => {
        clearTimeout(tooLate);
        subscription.unsubscribe();
        resolve(found);
      };
      const tooLate = setTimeout(() => reject(new Error(`${stream} can't be read`)), 10_000);
      const subscription = this.#connection.subscribe(inbox, {
        callback: (_, message) => {
          const isOver = message.headers === undefined || message.headers.code > 0;
          if (!isOver) found.push(message);
          else over();
        },
      });
      this.#connection.publish(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify(query), { reply: inbox });
    });
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}

/** The names of the JetStream streams of a bucket that have its shards. */
export function shardsOf(bucket: string, count = DEFAULT_SHARDS): string[] {
  return Array.from({ length: count }, (_, shard) => `SD_${bucket}_${shard}`);
}
