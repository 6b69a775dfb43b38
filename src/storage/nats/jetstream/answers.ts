// What the answers of JetStream mean: acknowledgements, refusals, and messages in their three forms.

import type { ShardState } from "../log/continuity.js";
import type { LogMessage, Published } from "../log/replicated-log.js";
import { HeaderBlock, headersOf, type HeaderValues } from "../client/header-block.js";
import type { NatsMessage } from "../client/nats-client.js";

/** The header that has the head of a message. */
export const HEAD_HEADER = "Sd";
/** The header that says which message has to be the subject's last, and is kept with what is stored. */
export const EXPECTED_HEADER = "Nats-Expected-Last-Subject-Sequence";

/** Error codes of JetStream's API; errors.json of nats-server names them. */
export const API_ERROR = {
  accountExceeded: 10_002,
  noSuchMessage: 10_037,
  noSuchStream: 10_059,
  nameInUse: 10_058,
  notEnoughServers: 10_074,
  noSuitablePeers: 10_005,
  notEnabled: 10_076,
  notEnabledForAccount: 10_039,
  wrongLastSequence: 10_071,
  anotherOnItsWay: 10_164,
  notAvailable: 10_008,
  noResources: 10_023,
  storageExceeded: 10_047,
  memoryExceeded: 10_028,
  storeFailed: 10_077,
} as const;

/** What the API refuses. */
export interface ApiFault {
  readonly code: number;
  readonly description: string;
}

/** An answer of the API, with whatever it has; `error` where it refuses. */
export interface ApiAnswer {
  readonly error?: { readonly err_code?: number; readonly description?: string };
  readonly [field: string]: unknown;
}

/** Why an answer is a refusal; `null` where it is none. */
export function faultOfAnswer({ error }: ApiAnswer): ApiFault | null {
  return error === undefined ? null : { code: error.err_code ?? 0, description: error.description ?? "" };
}

/** The JSON of an answer. */
export function jsonOf({ data }: NatsMessage): ApiAnswer {
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
  return JSON.parse(text) as ApiAnswer; // its fields are checked where they are used
}

/**
 * How long ago a majority of a stream's `copies` was behind the leader that says how the stream is, in milliseconds;
 * `null` where it does not say so.
 */
export function majorityAgoMs(info: ApiAnswer, copies: number): number | null {
  if (faultOfAnswer(info) !== null) return null;
  const cluster = info["cluster"];
  if (typeof cluster !== "object" || cluster === null) return copies === 1 ? 0 : null;
  // A follower without a leader answers too, and counts itself.
  const leader: unknown = Reflect.get(cluster, "leader");
  if (typeof leader !== "string" || leader === "") return null;
  const followers: unknown = Reflect.get(cluster, "replicas");
  const all = Array.isArray(followers) ? followers : [];
  // Of one from which nothing was ever heard that is 0.
  const agoNs = all
    .map(({ active }: { readonly active?: number }) => active ?? 0) // as the API has it
    .filter((ns) => ns > 0)
    .sort((left, right) => left - right);
  // While a stream gets more copies than it had, whoever serves on knows of the former number.
  const needed = Math.floor(Math.max(copies, 1 + all.length) / 2);
  const ns = needed === 0 ? 0 : agoNs[needed - 1];
  return ns === undefined ? null : ns / 1e6;
}

interface StateFields {
  readonly first_seq?: number;
  readonly last_seq?: number;
  readonly subjects?: Readonly<Record<string, number>>;
}

/** What an answer says of what a shard has; `null` where it does not. The reserve is counted where it was asked for. */
export function stateOf(info: ApiAnswer): ShardState | null {
  const { created, state } = info;
  if (typeof state !== "object" || state === null) return null;
  const { first_seq: first = 0, last_seq: last = 0, subjects = {} } = state as StateFields; // as the API has it
  const reserved = Object.values(subjects).reduce((sum, count) => sum + count, 0);
  return { created: typeof created === "string" ? created : "", first, last, reserved };
}

const FULL: ReadonlySet<number> = new Set([
  API_ERROR.accountExceeded,
  API_ERROR.noResources,
  API_ERROR.storageExceeded,
  API_ERROR.memoryExceeded,
]);

/** What an acknowledgement says of a publish. */
export function publishedOf(message: NatsMessage): Published {
  const answer = jsonOf(message);
  const fault = faultOfAnswer(answer);
  if (fault === null) {
    const sequence = answer["seq"];
    return typeof sequence === "number" ? { kind: "stored", sequence } : { kind: "unknown" };
  }
  const { code, description } = fault;
  if (code === API_ERROR.wrongLastSequence) return { kind: "moved" };
  if (code === API_ERROR.anotherOnItsWay) return { kind: "pending" };
  if (code === API_ERROR.notAvailable) return { kind: "untaken" };
  // One server's failing disk says so as well: others may have stored the message.
  const isAtLimit = code === API_ERROR.storeFailed && /^maximum (bytes|messages)/.test(description);
  return { kind: isAtLimit || FULL.has(code) ? "full" : "unknown" };
}

/** The message in an answer of a leader. */
export function messageOfLeader(answer: ApiAnswer): LogMessage | null {
  const stored = answer["message"];
  if (typeof stored !== "object" || stored === null) return null;
  const { seq, hdrs = "", data = "" } = stored as { seq?: unknown; hdrs?: string; data?: string }; // as the API has it
  if (typeof seq !== "number") return null;
  const headers = new HeaderBlock(Buffer.from(hdrs, "base64").toString());
  return { ...headOf(headers), sequence: seq, body: Buffer.from(data, "base64") };
}

/** The place of a message as any server gives it, or as it is republished: it stands in its headers. */
export function sequenceIn(headers: HeaderValues | null): number {
  return Number(headers?.get("Nats-Sequence"));
}

/** A message as any server gives it, or as it is republished. */
export function messageOfHeaders(message: NatsMessage, headers = headersOf(message)): LogMessage | null {
  const sequence = sequenceIn(headers);
  if (headers === null || !Number.isSafeInteger(sequence) || sequence === 0) return null;
  return { ...headOf(headers), sequence, body: Buffer.from(message.data) };
}

/** The head of a message that a consumer delivers, and how many follow: that stands where it is to be acknowledged. */
export function messageOfConsumer(
  message: NatsMessage,
): (Omit<LogMessage, "body"> & { readonly delivered: number; readonly pending: number }) | null {
  // $JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.CONSUMER-SEQUENCE.TIME.PENDING, with a domain and an account before the
  // stream, and a token behind, in the newer form.
  const tokens = message.reply?.split(".") ?? [];
  const place = (tokens.length >= 11 ? tokens.slice(7, 11) : tokens.slice(5, 9)).map(Number);
  const [sequence, delivered, , pending] = place;
  const headers = headersOf(message);
  if (headers === null || sequence === undefined || delivered === undefined || pending === undefined) return null;
  return { ...headOf(headers), sequence, delivered, pending };
}

function headOf(headers: HeaderValues): Pick<LogMessage, "previous" | "head"> {
  return { previous: Number(headers.get(EXPECTED_HEADER)), head: headers.get(HEAD_HEADER) };
}
