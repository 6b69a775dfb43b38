// What is used of the client of NATS: the part of @nats-io/transport-node 3.3 and later that has stayed the same.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Headers of a message that is sent. */
export interface EncodedHeaders {
  /** Not of the public part: the bytes that are sent. */
  encode?(): Uint8Array;
}

/** Headers of a message; those of an answer of the server's own have a `code` above 0. */
export interface NatsHeaders extends EncodedHeaders {
  readonly code: number;
  readonly description: string;
  /** The first value of a header; empty where it is absent. */
  get(name: string): string;
  append(name: string, value: string): void;
}

/** A message as it arrives. Its `data` may be a part of a larger piece of memory. */
export interface NatsMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly reply?: string;
  readonly headers?: NatsHeaders;
}

/** What a server tells of itself to whoever connects. */
export interface NatsServerInfo {
  readonly version: string;
  readonly server_name: string;
  readonly max_payload: number;
  readonly jetstream?: boolean;
  /** Addresses of the servers of its cluster, as far as it tells of them. */
  readonly connect_urls?: readonly string[];
}

/** What a server refuses; where it is the use of a subject it says of which, and for what. */
export interface NatsFault {
  readonly message: string;
  readonly operation?: string;
  readonly subject?: string;
}

/** What becomes of a connection: `disconnect`, `reconnect`, `error` where a server refuses something, and more. */
export interface NatsStatus {
  readonly type: string;
  readonly error?: NatsFault;
}

/** A connection, which is made again by itself when it is lost. */
export interface NatsConnection {
  readonly info?: NatsServerInfo;
  publish(
    subject: string,
    payload: Uint8Array | string,
    options: { readonly reply?: string; readonly headers?: EncodedHeaders },
  ): void;
  subscribe(
    subject: string,
    options: { readonly callback: (error: Error | null, message: NatsMessage) => void },
  ): { unsubscribe(): void };
  status(): AsyncIterable<NatsStatus>;
  flush(): Promise<void>;
  /** Leaves the server that is connected for the next. */
  reconnect(): Promise<void>;
  close(): Promise<void>;
  /** Not of the public part: its socket, which can be destroyed. */
  readonly protocol?: { readonly transport?: { discard(): void } };
}

/** What is asked of a connection. */
export interface NatsConnectOptions {
  readonly servers: readonly string[];
  readonly name: string;
  readonly timeout: number;
  readonly user?: string;
  readonly pass?: string;
  readonly authenticator?: unknown;
  readonly tls?: object;
  readonly maxReconnectAttempts: number;
  readonly reconnectTimeWait: number;
  readonly pingInterval: number;
  readonly maxPingOut: number;
  readonly ignoreAuthErrorAbort: boolean;
  /** Whether servers that are not named are left out. */
  readonly ignoreClusterUpdates?: boolean;
}

/** The client. */
export interface NatsClient {
  connect(options: NatsConnectOptions): Promise<NatsConnection>;
  headers(): NatsHeaders;
  /** Signs in with the contents of a creds file, asked for at each connection. */
  credsAuthenticator(creds: () => Uint8Array): unknown;
}

/** Thrown where a cluster can't be used as it is; the message is one line that says what to do. */
export class ClusterUnusableError extends Error {
  override readonly name = "ClusterUnusableError";
}

const PACKAGE = "@nats-io/transport-node";

/**
 * Loads the client, which is an optional peer dependency: from beside streamdir, else from the working directory.
 * Throws {@link ClusterUnusableError}.
 */
export async function loadNatsClient(): Promise<NatsClient> {
  const loaded = (await imported(PACKAGE)) ?? (await imported(resolvedFrom(process.cwd())));
  if (loaded === null)
    throw new ClusterUnusableError(`--storage nats:// needs the client of NATS: npm install ${PACKAGE}`);
  return loaded;
}

function resolvedFrom(folder: string): string | null {
  try {
    return pathToFileURL(createRequire(join(folder, "package.json")).resolve(PACKAGE)).href;
  } catch (fault) {
    if (isNotFound(fault)) return null;
    throw fault;
  }
}

async function imported(specifier: string | null): Promise<NatsClient | null> {
  if (specifier === null) return null;
  try {
    return (await import(specifier)) as NatsClient; // what it has is said above, and seen by the tests on real servers
  } catch (fault) {
    if (isNotFound(fault)) return null;
    throw fault;
  }
}

function isNotFound(fault: unknown): boolean {
  const code: unknown = fault instanceof Error ? Reflect.get(fault, "code") : undefined;
  return code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND";
}
