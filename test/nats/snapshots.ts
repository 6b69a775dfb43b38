import { createInbox, type NatsConnection } from "@nats-io/transport-node";

const TIMEOUT_MS = 30_000;

/** A JetStream stream as `nats stream backup` keeps it: what `backup.json` and `stream.tar.s2` of its directory have. */
export interface StreamSnapshot {
  readonly name: string;
  readonly config: object;
  readonly state: object;
  readonly chunks: readonly Uint8Array[];
}

/** Asks the API as `nats stream backup` does. */
export async function snapshot(connection: NatsConnection, name: string): Promise<StreamSnapshot> {
  const inbox = createInbox();
  const chunks: Uint8Array[] = [];
  const over = new Promise<void>((resolve, reject) => {
    const tooLate = setTimeout(() => reject(new Error(`the snapshot of ${name} does not end`)), TIMEOUT_MS);
    const subscription = connection.subscribe(inbox, {
      callback: (fault, message) => {
        if (fault === null && message.data.length > 0) {
          // The bytes are of a buffer that the connection uses again.
          chunks.push(Uint8Array.from(message.data));
          message.respond();
          return;
        }
        clearTimeout(tooLate);
        subscription.unsubscribe();
        if (fault === null) resolve();
        else reject(fault);
      },
    });
  });
  const { config, state } = await call(connection, `STREAM.SNAPSHOT.${name}`, { deliver_subject: inbox, jsck: true });
  await over;
  return { name, config: asObject(config), state: asObject(state), chunks };
}

/** Asks the API as `nats stream restore` does. */
export async function restore(connection: NatsConnection, { name, config, state, chunks }: StreamSnapshot): Promise<void> {
  const { deliver_subject: subject } = await call(connection, `STREAM.RESTORE.${name}`, { config, state });
  for (const chunk of chunks) {
    const answer = await connection.request(String(subject), chunk, { timeout: TIMEOUT_MS });
    if (answer.data.length > 0) throw new Error(`${name} is not restored: ${answer.string()}`);
  }
  const answer = await connection.request(String(subject), "", { timeout: TIMEOUT_MS });
  answerOf(name, answer.json());
}

async function call(connection: NatsConnection, subject: string, query: object): Promise<Readonly<Record<string, unknown>>> {
  const answer = await connection.request(`$JS.API.${subject}`, JSON.stringify(query), { timeout: TIMEOUT_MS });
  return answerOf(subject, answer.json());
}

function answerOf(of: string, answer: unknown): Readonly<Record<string, unknown>> {
  const fields = asObject(answer) as Record<string, unknown>; // as the API has it
  if (fields["error"] !== undefined) throw new Error(`${of}: ${JSON.stringify(fields["error"])}`);
  return fields;
}

function asObject(value: unknown): object {
  if (typeof value !== "object" || value === null) throw new Error(`${JSON.stringify(value)} is no object`);
  return value;
}
