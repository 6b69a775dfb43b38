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
const USER_FAULT =
  "must have USER:PASSWORD in front of an @; in both, %40 stands for @, %2F for /, %3F for ?, %3A for : and %25 for %";

/**
 * Reads `file`, or `nats://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/BUCKET][?replicas=3&shards=3]` (`tls://`
 * likewise); `null` where it is neither.
 */
export function parseStorage(text: string): StorageAddress | null {
  const read = readStorage(text);
  return "fault" in read ? null : read;
}

/** What is wrong with an address, in words that never have any of its password; `null` where it is one. */
export function faultOfAddress(text: string): string | null {
  const read = readStorage(text);
  return "fault" in read ? read.fault : null;
}

interface Fault {
  readonly fault: string;
}

function readStorage(text: string): StorageAddress | Fault {
  if (text === "file") return { kind: "file" };
  const [, scheme, rest = ""] = /^(nats|tls):\/\/(.*)$/s.exec(text) ?? [];
  if (scheme === undefined) return { fault: "must be file, or an address like nats://host1,host2,host3/bucket" };
  const userEnd = rest.lastIndexOf("@");
  const user = userEnd < 0 ? null : userOf(rest.slice(0, userEnd));
  if (user !== null && "fault" in user) return user;
  const [, hostPart = "", bucket = DEFAULT_BUCKET, query = ""] =
    /^([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(rest.slice(userEnd + 1)) ?? [];
  const servers = hostPart.split(",").map(serverOf);
  if (!servers.every((server) => server !== null))
    return { fault: "must name each server as HOST or HOST:PORT, with commas between them, like h1,h2:4223,[::1]" };
  if (!BUCKET.test(bucket)) return { fault: "must have a bucket of 1 to 16 of the characters a-z and 0-9" };
  const layout = layoutOf(query);
  return "fault" in layout ? layout : { kind: "nats", servers, isTls: scheme === "tls", user, bucket, ...layout };
}

function serverOf(text: string): string | null {
  const [, bracketed, named, digits = String(DEFAULT_PORT)] = HOST.exec(text) ?? [];
  const host = bracketed ?? named;
  const port = Number(digits);
  return host === undefined || port === 0 || port > MAX_PORT ? null : `${host}:${port}`;
}

function userOf(text: string): NonNullable<NatsAddress["user"]> | Fault {
  const [, name, password] = /^([^:@/?]+):([^:@/?]*)$/.exec(text) ?? [];
  if (name === undefined || password === undefined) return { fault: USER_FAULT };
  try {
    return { name: decodeURIComponent(name), password: decodeURIComponent(password) };
  } catch (fault) {
    if (fault instanceof URIError) return { fault: USER_FAULT };
    throw fault;
  }
}

function layoutOf(query: string): Pick<NatsAddress, "replicas" | "shards"> | Fault {
  let replicas: number | null = null;
  let shards: number | null = null;
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === "replicas") {
      if (!REPLICAS.includes(value)) return { fault: "must have ?replicas= of 1, 3 or 5" };
      replicas = Number(value);
    } else if (name === "shards") {
      if (!/^[1-9]\d?$/.test(value) || Number(value) > MAX_SHARDS)
        return { fault: `must have ?shards= of 1 to ${MAX_SHARDS}` };
      shards = Number(value);
    } else return { fault: `has the unknown option ${JSON.stringify(name)}: there are replicas and shards` };
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
