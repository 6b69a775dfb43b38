// The client of NATS, with what goes wrong on the way back: it is loaded in place of the real one (see `faultyClient`).

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  connect as connectReally,
  type ConnectionOptions,
  type Msg,
  type NatsConnection,
  type Subscription,
  type SubscriptionOptions,
} from "@nats-io/transport-node";
import { tempDir } from "../helpers/temp-dir.js";

export { credsAuthenticator, headers } from "@nats-io/transport-node";

/** Of so many acknowledgements of stored messages one is dropped; 0 for none. */
const DROPPED_ACKS = "FAULTY_DROPPED_ACKS";
/** Whether what is republished is dropped, doubled and delayed. */
const SPOILT_HINTS = "FAULTY_HINTS";

/** What a front end is started with so that its client loses acknowledgements, or spoils hints. */
export function faultyClient({ droppedAcks = 0, spoiltHints = false }): { readonly cwd: string; readonly env: Record<string, string> } {
  const cwd = tempDir();
  const place = join(cwd, "node_modules", "@nats-io", "transport-node");
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, "package.json"), JSON.stringify({ name: "@nats-io/transport-node", type: "module", main: "index.js" }));
  writeFileSync(join(place, "index.js"), `export * from ${JSON.stringify(import.meta.url)};\n`);
  writeFileSync(join(cwd, "package.json"), "{}");
  return { cwd, env: { [DROPPED_ACKS]: String(droppedAcks), [SPOILT_HINTS]: spoiltHints ? "yes" : "" } };
}

/** The path of this file, for who asks where the client came from. */
export const FAULTY_CLIENT = fileURLToPath(import.meta.url);

/** Connects, to a connection that loses what the environment says. */
export async function connect(options: ConnectionOptions): Promise<NatsConnection> {
  const connection = await connectReally(options);
  const subscribeReally = connection.subscribe.bind(connection);
  const spoil = new Spoiler(Number(process.env[DROPPED_ACKS] ?? 0), process.env[SPOILT_HINTS] === "yes");
  connection.subscribe = (subject: string, wish: SubscriptionOptions = {}): Subscription => {
    const { callback } = wish;
    if (callback === undefined) return subscribeReally(subject, wish);
    return subscribeReally(subject, { ...wish, callback: (error, message) => spoil.pass(message, () => void callback(error, message)) });
  };
  return connection;
}

const MAX_DELAY_MS = 300;

/** Decides what becomes of messages that arrive. */
class Spoiler {
  readonly #droppedAcks: number;
  readonly #spoiltHints: boolean;
  #acks = 0;
  #hints = 0;

  constructor(droppedAcks: number, spoiltHints: boolean) {
    this.#droppedAcks = droppedAcks;
    this.#spoiltHints = spoiltHints;
  }

  pass(message: Msg, deliver: () => void): void {
    if (this.#droppedAcks > 0 && isAck(message)) {
      this.#acks += 1;
      if (this.#acks % this.#droppedAcks === 0) return;
    }
    const isHint = message.subject.startsWith("sdr.") || message.subject.startsWith("sda.");
    if (!this.#spoiltHints || !isHint) return deliver();
    this.#hints += 1;
    const turn = this.#hints % 4;
    if (turn === 1) return;
    if (turn === 2) setTimeout(deliver, Math.random() * MAX_DELAY_MS).unref();
    if (turn === 3) deliver();
    if (turn !== 2) deliver();
  }
}

/** Whether this says that a message is stored. */
function isAck({ subject, data }: Msg): boolean {
  const text = Buffer.from(data.buffer, data.byteOffset, Math.min(data.byteLength, 40)).toString();
  return subject.startsWith("_INBOX.") && /^\{ *"stream": *"SD_/.test(text);
}
