// Tells who sent a request, also behind proxies.

import { isIPv4, isIPv6, SocketAddress } from "node:net";
import { parseNetworks, type Networks } from "../../net/networks.js";
import type { Line } from "../node/message.js";
import type { Log } from "../../ops/log.js";
import { clientAddressOf } from "./client-address.js";

/** Proxies in a row that are believed. */
const MAX_HOPS = 32;
/** An address in brackets with a port, and some blanks. */
const MAX_ENTRY_LENGTH = 64;
/** Connections' addresses for which it is remembered whether they are trusted. */
const MAX_REMEMBERED = 1024;
const ADDRESS = /^\s*(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5}|([^[\]\s]+))\s*$/;

/** What of a connection tells whether it is trusted. */
type Origin = Pick<Line, "remoteAddress" | "localAddress" | "destroyed">;

/** A request, as far as it says who sent it. */
export interface Sent {
  readonly req: { readonly socket: Origin };
  readonly headers: { forwardedFor: string | null; forwardedHost: string | null; forwardedProto: string | null };
  /** The address that it counts for ({@link clientAddressOf}). */
  client: string;
}

/** Knows which proxies may say for whom they ask. */
export class Clients {
  readonly #trusted: Networks;
  readonly #remembered = new Map<string, boolean>();
  readonly #log: Log;
  #isTold = false;

  /** `trustProxy` is a list of networks. Throws where it is none. */
  constructor(trustProxy: string, log: Log) {
    const trusted = parseNetworks(trustProxy);
    if (trusted === null) throw new Error(`Cannot trust proxies: ${trustProxy} is no list of networks`);
    this.#trusted = trusted;
    this.#log = log;
  }

  /** Whether a connection comes from a trusted proxy. */
  isTrusted(origin: Origin): boolean {
    if (this.#trusted.isEmpty) return false;
    const { remoteAddress } = origin;
    if (remoteAddress === undefined) return this.#trusted.hasUnixSockets && isOfUnixSocket(origin);
    let isTrusted = this.#remembered.get(remoteAddress);
    if (isTrusted !== undefined) return isTrusted;
    isTrusted = this.#trusted.has(remoteAddress);
    if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear();
    this.#remembered.set(remoteAddress, isTrusted);
    return isTrusted;
  }

  /**
   * Notes whom a request counts for. `X-Forwarded-*` is dropped where no trusted proxy sent it, so that nothing later
   * can believe it.
   */
  identify(sent: Sent): void {
    const { headers } = sent;
    const { forwardedFor } = headers;
    if (forwardedFor === null && headers.forwardedHost === null && headers.forwardedProto === null) return;
    if (this.isTrusted(sent.req.socket)) {
      const named = forwardedFor === null ? null : this.#clientIn(forwardedFor);
      if (named !== null) sent.client = named;
      return;
    }
    headers.forwardedFor = headers.forwardedHost = headers.forwardedProto = null;
    this.#tellOnce(sent.req.socket);
  }

  /** A proxy that nobody has named is found so; any client may send such a header, so that once is enough. */
  #tellOnce(origin: Origin): void {
    const { remoteAddress } = origin;
    // A client that is gone may have no address any more.
    if (this.#isTold || (remoteAddress === undefined && !isOfUnixSocket(origin))) return;
    this.#isTold = true;
    this.#log.warn("X-Forwarded headers are ignored: they come from an address that --trust-proxy does not name", {
      address: remoteAddress ?? "unix",
    });
  }

  /**
   * The client that a list of proxies ends at: the last address that is not trusted, as each proxy adds the one that it
   * was asked by. Where all are trusted, or what is before is no address, the first passed; `null` for none.
   */
  #clientIn(forwardedFor: string): string | null {
    let client: string | null = null;
    let end = forwardedFor.length;
    for (let hop = 0; hop < MAX_HOPS && end >= 0; hop += 1) {
      const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(",", end - 1);
      const address = addressIn(forwardedFor, comma + 1, end);
      if (address === null) return client;
      client = clientAddressOf({ remoteAddress: address });
      if (!this.#trusted.has(address)) return client;
      end = comma;
    }
    return client;
  }
}

/** A connection by TCP whose client is gone may have no remote address any more, but has a local one. */
export function isOfUnixSocket({ remoteAddress, localAddress, destroyed }: Origin): boolean {
  return remoteAddress === undefined && localAddress === undefined && !destroyed;
}

/** The address in a part of a text, in its one canonical form; `null` where it is none. */
function addressIn(text: string, from: number, to: number): string | null {
  if (to - from > MAX_ENTRY_LENGTH) return null;
  const [, bracketed, withPort, plain] = ADDRESS.exec(text.slice(from, to)) ?? [];
  const address = bracketed ?? withPort ?? plain ?? "";
  // A copy: a part of the header would keep all of it in memory.
  if (isIPv4(address)) return bracketed === undefined ? Buffer.from(address, "latin1").toString("latin1") : null;
  // A zone names an interface of the proxy's machine.
  if (!isIPv6(address) || address.includes("%")) return null;
  return new SocketAddress({ address, family: "ipv6" }).address;
}
