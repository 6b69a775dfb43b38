// Reads lists of addresses and networks.

import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

/** A set of addresses. */
export interface Networks {
  /** Whether it has `address`; an IPv4 address may be written as an IPv6 one (`::ffff:192.0.2.1`). */
  has(address: string): boolean;
}

/** `loopback` in a list stands for these. */
const LOOPBACK = ["127.0.0.0/8", "::1/128"];

/**
 * Reads addresses and networks separated by commas, like `10.0.0.0/8`, `2001:db8::/32`, `192.0.2.7` or `loopback`;
 * `null` when one of them is none.
 */
export function parseNetworks(list: string): Networks | null {
  const blocks = new BlockList();
  for (const part of list === "" ? [] : list.split(",")) {
    const networks = part.trim() === "loopback" ? LOOPBACK : [part.trim()];
    if (!networks.every((network) => add(blocks, network))) return null;
  }
  return {
    has(address) {
      const plain = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address.split("%")[0] ?? address;
      return isIP(plain) !== 0 && blocks.check(plain, isIPv4(plain) ? "ipv4" : "ipv6");
    },
  };
}

function add(blocks: BlockList, network: string): boolean {
  const [, address = "", digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(network) ?? [];
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
  return "must be addresses or networks like 10.0.0.0/8 or loopback, separated by commas";
}
