// Tells which client a connection belongs to.

import type { Line } from "../node/message.js";

/**
 * Stands for clients without an address: those of a Unix socket, and those that were gone before their address was
 * read.
 */
const NO_ADDRESS = "";
const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
/** Groups of 16 bits in an IPv6 address, and in the prefix that one subscriber has. */
const GROUPS = 8;
const PREFIX_GROUPS = 4;

/** Who sent a request, and on what. */
export interface Sender {
  readonly req: { readonly socket: Line };
  /** The address that it counts for. */
  readonly client: string;
}

/**
 * The client that a connection counts for: its IPv4 address, or the first 64 bits of its IPv6 address, because one
 * client has all the rest. All connections through one proxy that is not trusted, and all of a Unix socket, count for
 * one client.
 */
export function clientAddressOf({ remoteAddress }: Pick<Line, "remoteAddress">): string {
  if (remoteAddress === undefined) return NO_ADDRESS;
  if (!remoteAddress.includes(":")) return remoteAddress;
  return MAPPED_IPV4.exec(remoteAddress)?.[1] ?? prefixOf(remoteAddress);
}

/** The first 64 bits of an IPv6 address, as the platform writes it. */
function prefixOf(address: string): string {
  const [beforeZone = ""] = address.split("%");
  const [start = "", end = ""] = beforeZone.split("::");
  const [first, last] = [groupsOf(start), groupsOf(end)];
  const zeros = new Array<string>(Math.max(0, GROUPS - first.length - last.length)).fill("0");
  return `${[...first, ...zeros, ...last].slice(0, PREFIX_GROUPS).join(":")}::`;
}

function groupsOf(text: string): string[] {
  return text === "" ? [] : text.split(":");
}
