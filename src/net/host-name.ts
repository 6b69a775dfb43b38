// Tells the names of this machine from those of others.

import { isIPv4, isIPv6, SocketAddress } from "node:net";

/**
 * The name or address in a `Host` header or an origin's authority, without its port and brackets, in lower case; an
 * IPv6 address in its one canonical form.
 */
export function hostNameOf(authority: string): string {
  const [, bracketed, named] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(authority) ?? [];
  const name = (bracketed ?? named ?? authority).toLowerCase().replace(/\.$/, "");
  return isIPv6(name) && !name.includes("%") ? new SocketAddress({ address: name, family: "ipv6" }).address : name;
}

/**
 * Whether a name stands for this machine and nothing else: `localhost` and what is below it (RFC 6761, 6.3), or a
 * loopback address. No page of another site can have such a name.
 */
export function isLoopbackName(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost") || isLoopbackAddress(name);
}

/** Whether an IP address reaches only this machine. */
export function isLoopbackAddress(address: string): boolean {
  if (isIPv4(address)) return address.startsWith("127.");
  if (!isIPv6(address)) return false;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  return mapped === undefined ? /^(?:0*:)*:?0*1$/.test(address) : mapped.startsWith("127.");
}

/** What is wrong with a list of host names separated by commas, or `null`; an empty list is fine. */
export function faultOfHosts(value: unknown): string | null {
  const host = /^(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?$/;
  const isHost = (part: string): boolean => host.test(part) || isIPv6(part.replace(/^\[(.*)\]$/, "$1"));
  if (typeof value === "string" && (value === "" || value.split(",").every(isHost))) return null;
  return "must be host names without ports like streams.example.com or *.example.com, separated by commas";
}

/** A test of names (as {@link hostNameOf} gives them) against a list of hosts; `*.example.com` is all below that. */
export function hostMatcher(list: string): (name: string) => boolean {
  const hosts =
    list === ""
      ? []
      : list.split(",").map((part) => hostNameOf(part.includes(":") && !part.startsWith("[") ? `[${part}]` : part));
  const exact = new Set(hosts.filter((host) => !host.startsWith("*.")));
  const suffixes = hosts.filter((host) => host.startsWith("*.")).map((host) => host.slice(1));
  return (name) => exact.has(name) || suffixes.some((suffix) => name.endsWith(suffix));
}
