// Reads the option `--storage`.

/** Where a server keeps its streams. */
export type StorageAddress = { readonly kind: "file" } | ({ readonly kind: "nats" } & NatsAddress);

/** A bucket in a cluster of NATS servers. */
export interface NatsAddress {
  /** `host:port` of each server that is named; the cluster tells of the others. */
  readonly servers: readonly string[];
  readonly isTls: boolean;
  readonly user: { readonly name: string; readonly password: string } | null;
  readonly bucket: string;
  /** How many servers have each message; `null` for what the bucket has, 3 for a new one. */
  readonly replicas: number | null;
  /** Into how many JetStream streams a new bucket is divided; `null` for what the bucket has, 3 for a new one. */
  readonly shards: number | null;
}

const DEFAULT_BUCKET = "streamdir";
const DEFAULT_PORT = 4222;
const MAX_PORT = 65_535;
const MAX_SHARDS = 64;
const HOST = /^(?:(\[[0-9A-Fa-f:.]+\])|([\w.-]+))(?::(\d{1,5}))?$/;
const BUCKET = /^[a-z0-9]{1,16}$/;
const REPLICAS: readonly string[] = ["1", "3", "5"];

/**
 * Reads `file`, or `nats://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/BUCKET][?replicas=3&shards=3]` (`tls://`
 * likewise); `null` where it is neither.
 */
export function parseStorage(text: string): StorageAddress | null {
  if (text === "file") return { kind: "file" };
  const [, scheme, userPart, hostPart = "", bucket = DEFAULT_BUCKET, query = ""] =
    /^(nats|tls):\/\/(?:([^@/?]*)@)?([^@/?]+)(?:\/([^/?]*))?(?:\?(.*))?$/.exec(text) ?? [];
  if (scheme === undefined || !BUCKET.test(bucket)) return null;
  const servers = hostPart.split(",").map(serverOf);
  const user = userPart === undefined ? null : userOf(userPart);
  const layout = layoutOf(query);
  if (!servers.every((server) => server !== null) || user === undefined || layout === null) return null;
  return { kind: "nats", servers, isTls: scheme === "tls", user, bucket, ...layout };
}

function serverOf(text: string): string | null {
  const [, bracketed, named, digits = String(DEFAULT_PORT)] = HOST.exec(text) ?? [];
  const host = bracketed ?? named;
  const port = Number(digits);
  return host === undefined || port === 0 || port > MAX_PORT ? null : `${host}:${port}`;
}

/** The user of an address, `undefined` where it is none. */
function userOf(text: string): NatsAddress["user"] | undefined {
  const [name = "", password, more] = text.split(":");
  if (name === "" || password === undefined || more !== undefined) return undefined;
  try {
    return { name: decodeURIComponent(name), password: decodeURIComponent(password) };
  } catch (fault) {
    if (fault instanceof URIError) return undefined;
    throw fault;
  }
}

function layoutOf(query: string): Pick<NatsAddress, "replicas" | "shards"> | null {
  let replicas: number | null = null;
  let shards: number | null = null;
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === "replicas" && REPLICAS.includes(value)) replicas = Number(value);
    else if (name === "shards" && /^[1-9]\d?$/.test(value) && Number(value) <= MAX_SHARDS) shards = Number(value);
    else return null;
  }
  return { replicas, shards };
}

/** An address as the log writes it: without the password. */
export function formatStorage(address: StorageAddress): string {
  if (address.kind === "file") return "file";
  return `${address.isTls ? "tls" : "nats"}://${address.servers.join(",")}/${address.bucket}`;
}

/** Whether an address has a password: what others may see must not have it. */
export function hasPassword(text: string): boolean {
  const address = parseStorage(text);
  return address?.kind === "nats" && address.user !== null;
}
