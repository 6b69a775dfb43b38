// Reads lists of addresses and networks.

import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

/** A set of addresses. */
export interface Networks {
  /** Whether no address is in it, and no Unix socket either. */
  readonly isEmpty: boolean;
  /** Whether it has the clients of Unix sockets, which have no address. */
  readonly hasUnixSockets: boolean;
  /** Whether it has `address`; an IPv4 address may be written as an IPv6 one (`::ffff:192.0.2.1`). */
  has(address: string): boolean;
}

/** `loopback` in a list stands for these. */
const LOOPBACK = ["127.0.0.0/8", "::1/128"];
/** Stands for the clients of Unix sockets. */
const UNIX = "unix";

/**
 * Reads addresses and networks separated by commas, like `10.0.0.0/8`, `2001:db8::/32`, `192.0.2.7`, `loopback` or
 * `unix`; `null` when one of them is none. An IPv4 address is in an IPv6 network when its mapped form is.
 */
export function parseNetworks(list: string): Networks | null {
  const blocks = new BlockList();
  const parts = list === "" ? [] : list.split(",").map((part) => part.trim());
  for (const part of parts) {
    const networks = part === "loopback" ? LOOPBACK : [part];
    if (part !== UNIX && !networks.every((network) => add(blocks, network))) return null;
  }
  return {
    isEmpty: parts.length === 0,
    hasUnixSockets: parts.includes(UNIX),
    has(address) {
      const plain = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address.split("%")[0] ?? address;
      return isIP(plain) !== 0 && blocks.check(plain, isIPv4(plain) ? "ipv4" : "ipv6");
    },
  };
}

function add(blocks: BlockList, network: string): boolean {
  // A zone names an interface of this machine: no network has one.
  const [, address = "", digits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(network) ?? [];
  if (!isIPv4(address) && !isIPv6(address)) return false;
  const bits = isIPv4(address) ? 32 : 128;
  const prefix = digits === undefined ? bits : Number(digits);
  if (prefix > bits) return false;
  blocks.addSubnet(address, prefix, isIPv4(address) ? "ipv4" : "ipv6");
  return true;
}

/** What is wrong with a list of networks, or `null`; an empty list is fine. */
export function faultOfNetworks(value: unknown): string | null {
  if (typeof value === "string" && parseNetworks(value) !== null) return null;
  return "must be addresses or networks like 10.0.0.0/8, loopback or unix, separated by commas";
}
