// Opens one address, and takes connections there.

import { createServer, type Server, type Socket } from "node:net";
import { ALL_ADDRESSES, formatAuthority, formatListen, type ListenAddress } from "../../net/listen-address.js";
import { LISTEN_BACKLOG } from "./plan.js";
import { isBeyond, type BoundAddress, type Reach } from "./reach.js";
import { removeStaleSocket, withMode } from "./socket-file.js";

/** What is wrong with an address that can't be listened on. */
export class ListenError extends Error {
  readonly address: ListenAddress;

  /** Whom it was to be kept from. */
  readonly reach: Reach;

  /** The platform's error; or `null` for an address that is refused because others can reach it than `reach`. */
  constructor(address: ListenAddress, cause: Error | null, reach: Reach = "everybody") {
    super(cause?.message ?? `can be reached from beyond ${reach}`, { cause });
    this.address = address;
    this.reach = reach;
  }
}

/** How {@link Listener.open} treats its connections. */
export interface ListenerOptions {
  /** The permissions of a Unix socket. */
  readonly unixMode: number;
  /** Addresses are refused that others can reach. */
  readonly reach: Reach;
  readonly onConnection: (socket: Socket, listener: Listener) => void;
  /** A fault of a listener that is open. */
  readonly onFault: (error: Error) => void;
}

/** An address that is open. */
export class Listener {
  readonly address: ListenAddress;
  readonly bound: BoundAddress;
  readonly #server: Server;

  private constructor(address: ListenAddress, server: Server, bound: BoundAddress) {
    this.address = address;
    this.#server = server;
    this.bound = bound;
  }

  /**
   * Listens at `address`. An address that is refused takes no connection: it is closed before the first. Throws
   * {@link ListenError}.
   */
  static async open(address: ListenAddress, options: ListenerOptions): Promise<Listener> {
    const { unixMode, reach, onConnection, onFault } = options;
    // As node:http makes them.
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    try {
      if (address.kind === "unix") await removeStaleSocket(address.path);
      return await new Promise<Listener>((resolve, reject) => {
        server.once("error", reject);
        server.once("listening", () => {
          const bound = server.address();
          const listener = new Listener(taken(address, bound), server, bound);
          if (isBeyond(bound, reach)) return void server.close(() => reject(new ListenError(address, null, reach)));
          server.off("error", reject);
          server.on("error", onFault);
          server.on("connection", (socket) => onConnection(socket, listener));
          resolve(listener);
        });
        begin(server, address, unixMode);
      });
    } catch (error) {
      throw error instanceof Error && !(error instanceof ListenError) ? new ListenError(address, error) : error;
    }
  }

  /** Whether it takes connections by TCP, or by a Unix socket. */
  get isUnix(): boolean {
    return typeof this.bound === "string";
  }

  /** The port, where it has one. */
  get port(): number | null {
    return typeof this.bound === "object" ? (this.bound?.port ?? null) : null;
  }

  /** Host and port as a URL has them; for the listener of a file descriptor, those that it is bound to. */
  get authority(): string {
    if (typeof this.bound !== "object" || this.bound === null) return "localhost";
    const host = this.address.kind === "tcp" ? this.address.host : this.bound.address;
    return formatAuthority(host, this.bound.port);
  }

  /** As `--listen` writes it, with the real port. */
  get text(): string {
    if (this.address.kind === "tcp") return formatListen({ ...this.address, port: this.port ?? this.address.port });
    return formatListen(this.address);
  }

  /** Stops listening; resolves when the last of its connections is gone. */
  close(): Promise<void> {
    return new Promise((resolve) => void this.#server.close(() => resolve()));
  }
}

/** The address that was taken for the one that was asked for. */
function taken(address: ListenAddress, bound: BoundAddress): ListenAddress {
  const isAll = address.kind === "tcp" && address.host === ALL_ADDRESSES;
  return isAll && typeof bound === "object" && bound !== null ? { ...address, host: bound.address } : address;
}

function begin(server: Server, address: ListenAddress, unixMode: number): void {
  const backlog = LISTEN_BACKLOG;
  switch (address.kind) {
    case "tcp":
      // Of no host, Node takes all addresses; those of IPv4 alone where the machine has no IPv6.
      return void server.listen({
        ...(address.host !== ALL_ADDRESSES && { host: address.host }),
        port: address.port,
        backlog,
      });
    case "unix":
      return withMode(address.path, unixMode, () => void server.listen({ path: address.path, backlog }));
    case "fd":
      return void server.listen({ fd: address.fd, backlog });
  }
}
