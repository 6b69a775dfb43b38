// Tells which client a connection belongs to.

import type { Line } from "../node/message.js";

/**
 * Stands for clients without an address: those of a Unix socket, and those that were gone before their address was
 * read.
 */
const NO_ADDRESS = "";
const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
/** Where IPv4 addresses are that a translator in front of the server writes as IPv6 (RFC 6052, 2.1). */
const TRANSLATED = ["64", "ff9b", "0", "0", "0", "0"].join(":");
/** Where who has an IPv4 address has 2^80 IPv6 addresses that hold it (6to4: RFC 3056, 2). */
const OF_IPV4 = "2002";
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
  return MAPPED_IPV4.exec(remoteAddress)?.[1] ?? clientOf(groupsIn(remoteAddress));
}

/** The first 64 bits of an IPv6 address, or the IPv4 address that it stands for. */
function clientOf(groups: readonly string[]): string {
  if (groups[0] === OF_IPV4) return ipv4Of(groups.slice(1, 3));
  if (groups.slice(0, 6).join(":") === TRANSLATED) return ipv4Of(groups.slice(6));
  return `${groups.slice(0, PREFIX_GROUPS).join(":")}::`;
}

function ipv4Of(groups: readonly string[]): string {
  return groups.flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 0xff]).join(".");
}

/** All groups of an IPv6 address, as the platform writes it. */
function groupsIn(address: string): string[] {
  const [beforeZone = ""] = address.split("%");
  const [start = "", end = ""] = beforeZone.split("::");
  const [first, last] = [groupsOf(start), groupsOf(end)];
  const zeros = new Array<string>(Math.max(0, GROUPS - first.length - last.length)).fill("0");
  return [...first, ...zeros, ...last];
}

function groupsOf(text: string): string[] {
  return text === "" ? [] : text.split(":");
}
