import type { Clock, Timer } from "../../../ops/clock.js";
import type { Log } from "../../../ops/log.js";
import { WatchedFile } from "../../../ops/watched-file.js";
import type { NatsAddress } from "../../../net/storage-address.js";
import { connectOrDestroy } from "../client/leftover-sockets.js";
import {
  ClusterUnusableError,
  type NatsClient,
  type NatsConnection,
  type NatsConnectOptions,
  type NatsFault,
  type NatsMessage,
} from "../client/nats-client.js";
import { withAdvice } from "./permissions.js";
import { Requests } from "./requests.js";
import { hintOf, identityCheckFor } from "../client/server-identity.js";
import { kindOf } from "./subject-kind.js";
import { Subscriptions } from "./subscriptions.js";

/** How a cluster is connected to. */
export interface ConnectionOptions {
  readonly address: NatsAddress;
  /** A file to sign in with; empty for none. */
  readonly credsFile: string;
  readonly client: NatsClient;
  readonly clock: Clock;
  readonly log: Log;
}

/** The oldest server whose compare-and-swap holds in a cluster: earlier ones take both of two that conflict. */
const MIN_VERSION = [2, 11] as const;
const CONNECT_TIMEOUT_MS = 10_000;
/** A server that does not answer these is left for another within about five seconds. */
const PING_INTERVAL_MS = 2000;
const MAX_PINGS_OUT = 2;
const RECONNECT_PAUSE_MS = 250;
const MAX_CREDS_BYTES = 64 * 1024;
/** How soon a server that can't be used is left for another, which may be such as well. */
const LEAVE_UNUSABLE_MS = 2000;
/** How long no server may be connected before somebody should look: as long as a shard may have no leader. */
const PATIENCE_MS = 4000;

/** Why a server is left for another. */
const FAULT_OF_SERVER = {
  silent: "the NATS server sees no majority of the others",
  refusing: "the NATS server refuses what streamdir needs",
} as const;

/** The connection to a cluster: made again for ever when it is lost. */
export class ClusterConnection {
  readonly requests: Requests;
  #maxPayloadBytes: number;
  readonly #connection: NatsConnection;
  /** How many servers the user has named. */
  readonly #named: number;
  readonly #subscriptions: Subscriptions;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #creds: WatchedFile | null;
  /** Called when a connection is there again, or the right to subscribe: what was published meanwhile was missed. */
  onGap: () => void = () => {};
  /** Called before that when another connection is there, to a server with permissions of its own maybe. */
  onMoved: () => void = () => {};
  #refusal: string | null = null;
  /** Why a server has ended the connection, or refuses it; `null` where none has said so. */
  #lastFault: string | null = null;
  /** Kinds of subjects of which it was logged that the user may not use them, on this connection or one before. */
  readonly #forbidden = new Set<string>();
  #isClosing = false;
  /** Whether a server was left once more in the same outage: what comes of it was told the first time. */
  #isLeavingAgain = false;
  /** The server that is being left; `null` once a connection is there again. */
  #left: string | null = null;
  /** Goes off when there was no connection for so long that somebody should look; `null` while there is one. */
  #outage: Timer | null = null;
  /** Whether it was told that no server is connected. */
  #isOutageTold = false;
  /** Goes off when the server that can't be used is left for another; `null` while the one that is connected can. */
  #leaving: Timer | null = null;
  /** Why servers can't be used, as was logged since one could. */
  readonly #toldRefusals = new Set<string>();

  private constructor(
    connection: NatsConnection,
    creds: WatchedFile | null,
    { address, client, clock, log }: ConnectionOptions,
  ) {
    this.#connection = connection;
    this.#named = address.servers.length;
    this.#log = log;
    this.#creds = creds;
    this.#subscriptions = new Subscriptions(connection, clock);
    this.#subscriptions.onAgain = (subjects) => this.#mayHearAgain(subjects);
    this.requests = new Requests(client, connection, this.#subscriptions, clock);
    this.#clock = clock;
    this.#maxPayloadBytes = connection.info?.max_payload ?? 0;
    void this.#follow();
  }

  /** Connects. Throws {@link ClusterUnusableError}. */
  static async open(options: ConnectionOptions): Promise<ClusterConnection> {
    const { address, credsFile, client } = options;
    const signIn = credsFile === "" ? null : await Credentials.read(credsFile);
    try {
      const asked: NatsConnectOptions = {
        servers: address.servers,
        name: "streamdir",
        timeout: CONNECT_TIMEOUT_MS,
        ...(address.user === null ? {} : { user: address.user.name, pass: address.user.password }),
        ...(signIn === null ? {} : { authenticator: client.credsAuthenticator(() => signIn.bytes) }),
        ...(address.isTls ? { tls: { checkServerIdentity: identityCheckFor(address.servers) } } : {}),
        maxReconnectAttempts: -1,
        reconnectTimeWait: RECONNECT_PAUSE_MS,
        pingInterval: PING_INTERVAL_MS,
        maxPingOut: MAX_PINGS_OUT,
        ignoreAuthErrorAbort: true,
      };
      // Servers tell of each other, also whoever they refuse. A client that listens to that tries those which refuse it
      // for ever: the first connection goes to each server that is named, once.
      const first = await connectOrDestroy(() => client.connect({ ...asked, ignoreClusterUpdates: true }));
      await first.close();
      const connection = await connectOrDestroy(() => client.connect(asked));
      const refusal = refusalOf(connection);
      if (refusal === null) return new ClusterConnection(connection, signIn?.file ?? null, options);
      await connection.close();
      throw new ClusterUnusableError(refusal);
    } catch (fault) {
      signIn?.file.close();
      if (fault instanceof ClusterUnusableError) throw fault;
      const why = fault instanceof Error ? fault.message : String(fault);
      throw new ClusterUnusableError(
        `no NATS server can be used at ${address.servers.join(", ")}: ${why}${hintOf(fault)}`,
        { cause: fault },
      );
    }
  }

  /** Bytes that a message may have on its way, with its headers, as the server says that was connected last. */
  get maxPayloadBytes(): number {
    return this.#maxPayloadBytes;
  }

  /** Why nothing can be asked now; `null` where something can. */
  get fault(): string | null {
    if (this.#refusal !== null) return this.#refusal;
    const { isConnected, deafness } = this.requests;
    if (isConnected) return deafness === null ? null : withAdvice(deafness);
    const why = this.#lastFault === null ? "" : `: ${this.#lastFault}`;
    return `no server of the NATS cluster is connected${why}`;
  }

  /** Calls for each message of a subject. Ends with the function that it returns. */
  subscribe(subject: string, onMessage: (message: NatsMessage) => void): () => void {
    return this.#subscriptions.add(subject, { onMessage });
  }

  /** Publishes something that nobody answers. */
  tell(subject: string, text: string): void {
    if (this.requests.isConnected) this.#connection.publish(subject, text, {});
  }

  /**
   * Connects to another server than the one that is connected, which may be cut off from the others, or alone in
   * what it refuses. `isFirst` says whether none has been left for that since all was well. Says whether it is left.
   */
  leaveServer(how: keyof typeof FAULT_OF_SERVER, isFirst: boolean): boolean {
    if (this.#isClosing || !this.requests.isConnected) return false;
    if (how === "refusing" && !this.#knowsAnother) return false;
    this.#isLeavingAgain = !isFirst;
    this.#log[this.#levelUnlessAgain("warn")](`${FAULT_OF_SERVER[how]}: trying another`, { server: this.#serverName });
    this.#left = this.#serverName;
    this.#goToNext();
    return true;
  }

  #goToNext(): void {
    this.#connection.reconnect().catch((fault: unknown) => {
      this.#log.warn("the NATS server can't be left", { fault: String(fault) });
    });
  }

  get #knowsAnother(): boolean {
    return Math.max(this.#named, this.#connection.info?.connect_urls?.length ?? 0) > 1;
  }

  async #follow(): Promise<void> {
    for await (const { type, error } of this.#connection.status()) {
      // The client says so of each attempt that a server has refused as well, and in the end of all that it is over.
      const { isConnected } = this.requests;
      if (type === "disconnect") {
        this.requests.setConnected(false);
        if (isConnected && !this.#isClosing)
          this.#log[this.#levelUnlessAgain("warn")]("the connection to the NATS cluster is lost");
        if (!this.#isClosing) this.#outage ??= this.#clock.after(PATIENCE_MS, () => this.#tellOutage());
      } else if (type === "reconnect" && !isConnected) {
        const left = this.#left;
        this.#left = null;
        // The client goes from the first server that it had to the same: a second time it takes another.
        if (left === this.#serverName && this.#knowsAnother) this.#goToNext();
        else this.#reconnected();
      }
      if (type === "error" && error !== undefined) this.#refused(error);
    }
  }

  #tellOutage(): void {
    this.#isOutageTold = true;
    const why = this.#lastFault === null ? {} : { fault: this.#lastFault };
    this.#log.error("no server of the NATS cluster is connected", why);
  }

  #refused({ operation = "", subject, message }: NatsFault): void {
    if (subject === undefined) {
      if (this.#lastFault !== message) this.#log.warn("a NATS server reports a fault", { fault: message });
      this.#lastFault = message;
      return;
    }
    if (operation === "publish") this.requests.refuse(subject, message);
    const kind = `${operation} ${kindOf(subject)}`;
    if (this.#forbidden.has(kind)) return;
    this.#forbidden.add(kind);
    const server = this.#serverName;
    this.#log.error("the user of the NATS servers may not use a subject", { operation, subject, server });
  }

  /** A server has taken a subject that one had refused. What it refuses from now on is told of anew. */
  allowed(operation: "publish" | "subscription", subject: string): void {
    if (this.#forbidden.delete(`${operation} ${kindOf(subject)}`))
      this.#log.info("the user of the NATS servers may use a subject again", { operation, subject });
  }

  #mayHearAgain(subjects: readonly string[]): void {
    for (const subject of subjects) this.allowed("subscription", subject);
    this.onGap();
  }

  get #serverName(): string {
    return this.#connection.info?.server_name ?? "";
  }

  #reconnected(): void {
    this.#outage?.cancel();
    this.#outage = null;
    this.#leaving?.cancel();
    this.#leaving = null;
    const refusal = refusalOf(this.#connection);
    this.#refusal = refusal;
    this.#lastFault = null;
    this.requests.setConnected(refusal === null);
    if (refusal !== null) return this.#leaveUnusable(refusal);
    this.#toldRefusals.clear();
    // Where each server refuses the same, that is told of the first two: the one that was left, and another.
    if (!this.#isLeavingAgain) this.#forbidden.clear();
    const level = this.#isOutageTold ? "info" : this.#levelUnlessAgain("info");
    this.#log[level]("connected to the NATS cluster again", { server: this.#serverName });
    this.#isLeavingAgain = this.#isOutageTold = false;
    this.#takeLimit(this.#connection.info?.max_payload ?? 0);
    this.onMoved();
    void this.#subscriptions.tryAgain();
    this.onGap();
  }

  #leaveUnusable(refusal: string): void {
    if (!this.#toldRefusals.has(refusal)) this.#log.error("a NATS server can't be used", { fault: refusal });
    this.#toldRefusals.add(refusal);
    this.#leaving = this.#clock.after(LEAVE_UNUSABLE_MS, () => {
      this.#leaving = null;
      // It may have ended by itself meanwhile: then the client looks for another already.
      if (!this.#isClosing && this.#outage === null && this.#knowsAnother) this.#goToNext();
    });
  }

  #takeLimit(maxPayloadBytes: number): void {
    if (maxPayloadBytes < this.#maxPayloadBytes)
      this.#log.warn("a message of the NATS servers may have less than before", { maxPayloadBytes });
    this.#maxPayloadBytes = maxPayloadBytes;
  }

  #levelUnlessAgain<Level extends "info" | "warn">(level: Level): Level | "debug" {
    return this.#isLeavingAgain ? "debug" : level;
  }

  /** Sends what is on its way and closes. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#outage?.cancel();
    this.#leaving?.cancel();
    this.#creds?.close();
    this.#subscriptions.stop();
    this.requests.close();
    await this.#connection.close();
    // Where it is just being made again, closing leaves its socket open.
    this.#connection.protocol?.transport?.discard();
  }
}

/** Why a server can't be used; `null` where it can. */
function refusalOf({ info }: NatsConnection): string | null {
  if (info === undefined) return "the NATS server says nothing of itself";
  const { version, server_name: name, jetstream } = info;
  const needed = `${MIN_VERSION.join(".")} is needed: earlier ones may store both of two messages that conflict`;
  if (!isNewEnough(version)) return `the NATS server ${name} has version ${version}, and ${needed}`;
  return jetstream === true ? null : `the NATS server ${name} has JetStream turned off`;
}

/** Whether a version of nats-server, like `2.11.3` or `v2.12.0-RC.1`, is one that can be used. */
export function isNewEnough(version: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) > MIN_VERSION[0] || (Number(major) === MIN_VERSION[0] && Number(minor) >= MIN_VERSION[1]);
}

/** A creds file: read again when it changes, for the next connection. */
class Credentials {
  readonly file: WatchedFile;
  #bytes: Uint8Array;

  private constructor(path: string, bytes: Uint8Array) {
    this.#bytes = bytes;
    this.file = new WatchedFile([path], () => void this.#readAgain(path));
  }

  get bytes(): Uint8Array {
    return this.#bytes;
  }

  static async read(path: string): Promise<Credentials> {
    try {
      return new Credentials(path, Buffer.from(await WatchedFile.read(path, MAX_CREDS_BYTES)));
    } catch (fault) {
      const why = fault instanceof Error ? fault.message : String(fault);
      throw new ClusterUnusableError(`the creds file of --nats-creds can't be read: ${why}`, { cause: fault });
    }
  }

  async #readAgain(path: string): Promise<void> {
    // One that can't be read keeps the old: the next connection says whether that still counts.
    this.#bytes = await WatchedFile.read(path, MAX_CREDS_BYTES).then(Buffer.from, () => this.#bytes);
  }
}
