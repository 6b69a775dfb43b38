// Reads the option `--listen`.

import { isIPv6 } from "node:net";

/** Where a server listens. */
export type ListenAddress =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "fd"; readonly fd: number };

/** The host of all of a machine's addresses. */
export const ALL_ADDRESSES = "::";

const MAX_PORT = 65_535;
const HOST_AND_PORT = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([\w.-]+|\*)):(\d{1,5})$/;

/**
 * Reads addresses separated by commas: `HOST:PORT` (`[::1]:4437`, `*:4437` for all), `unix:PATH` and `fd:N`; `null`
 * when one of them is none, and for none at all.
 */
export function parseListen(text: string): readonly ListenAddress[] | null {
  const addresses: ListenAddress[] = [];
  for (const part of text.split(",")) {
    const address = parseAddress(part.trim());
    if (address === null) return null;
    addresses.push(address);
  }
  return addresses;
}

function parseAddress(text: string): ListenAddress | null {
  if (text.startsWith("unix:")) return text.length > 5 ? { kind: "unix", path: text.slice(5) } : null;
  const fd = /^fd:(\d{1,7})$/.exec(text)?.[1];
  if (fd !== undefined) return { kind: "fd", fd: Number(fd) };
  const [, bracketed, named, digits] = HOST_AND_PORT.exec(text) ?? [];
  const port = Number(digits);
  if (!(port <= MAX_PORT) || (bracketed !== undefined && !isIPv6(bracketed))) return null;
  return { kind: "tcp", host: bracketed ?? (named === undefined || named === "*" ? ALL_ADDRESSES : named), port };
}

/** A host and a port as a URL has them: a zone of this machine's behind `%25` (RFC 6874, 2). Browsers take none. */
export function formatAuthority(host: string, port: number): string {
  return formatListen({ kind: "tcp", host: host.replace("%", "%25"), port });
}

/** An address as `--listen` and the log write it. */
export function formatListen(address: ListenAddress): string {
  switch (address.kind) {
    case "tcp":
      return `${address.host.includes(":") ? `[${address.host}]` : address.host}:${address.port}`;
    case "unix":
      return `unix:${address.path}`;
    case "fd":
      return `fd:${address.fd}`;
  }
}
