import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";

/**
 * Ports of this machine that were free a moment ago, no two the same: a program that can't pick one itself is told
 * these.
 */
export async function freePorts(count: number): Promise<number[]> {
  // All are held until the last is found: asked for one after the other, a port may come twice.
  const holders = Array.from({ length: count }, () => createServer());
  const ports: number[] = [];
  for (const holder of holders) {
    holder.listen(0, "127.0.0.1");
    await once(holder, "listening");
    ports.push((holder.address() as AddressInfo).port); // it listens on a port
  }
  await Promise.all(holders.map((holder) => new Promise((resolve) => holder.close(resolve))));
  return ports;
}

/** One of them. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
