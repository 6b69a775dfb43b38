import { connect, type Msg, type NatsConnection } from "@nats-io/transport-node";

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
  async *messages(stream: string, filter: string): AsyncGenerator<Msg> {
    for (let from = 1; ;) {
      const found = await this.#batch(stream, { seq: from, next_by_subj: filter, batch: 500, max_bytes: 2 ** 20 });
      yield* found;
      const last = found.at(-1);
      if (last === undefined) return;
      from = sequenceOf(last) + 1;
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

/** The place of a message that was read. */
export function sequenceOf(message: Msg): number {
  return Number(message.headers?.get("Nats-Sequence"));
}

/** The names of the JetStream streams of a bucket that have its shards. */
export function shardsOf(bucket: string, count = 6): string[] {
  return Array.from({ length: count }, (_, shard) => `SD_${bucket}_${shard}`);
}
