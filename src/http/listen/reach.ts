// Who can reach an address.

import type { AddressInfo } from "node:net";
import { isLoopbackAddress } from "../../net/host-name.js";
import { parseNetworks } from "../../net/networks.js";

/** Where a server listens once it does: a port, or the path of a Unix socket; `null` where that is not known. */
export type BoundAddress = AddressInfo | string | null;

/** Who may be able to reach a server: this machine's own programs, those of its private networks too, or everybody. */
export type Reach = "loopback" | "private" | "everybody";

/** Networks that are not routed on the internet (RFC 1918, RFC 4193, and link-local ones). */
const PRIVATE = parseNetworks("10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,fc00::/7,fe80::/10");

/** Whether others than this machine's own programs may reach an address. One that is not known counts as reachable. */
export function isBeyondLoopback(bound: BoundAddress): boolean {
  if (typeof bound === "string") return false;
  return bound === null || !isLoopbackAddress(bound.address);
}

/** Whether others may reach an address than `reach` says. */
export function isBeyond(bound: BoundAddress, reach: Reach): boolean {
  if (reach === "everybody" || !isBeyondLoopback(bound)) return false;
  const address = typeof bound === "object" ? bound?.address : undefined;
  return reach === "loopback" || address === undefined || PRIVATE?.has(address) !== true;
}
