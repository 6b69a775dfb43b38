import { once } from "node:events";
import { createServer, type Server } from "node:net";

/** Below those that Linux gives to connections, and to servers that ask for any: nobody is given one of these by chance. */
const LOWEST = 10_240;
const HIGHEST = 32_767;

/**
 * Ports of this machine that were free a moment ago, no two the same: a program that can't pick one itself is told
 * these.
 */
export async function freePorts(count: number): Promise<number[]> {
  // All are held until the last is found.
  const held = new Map<number, Server>();
  while (held.size < count) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1));
    const holder = held.has(port) ? null : await holderOf(port);
    if (holder !== null) held.set(port, holder);
  }
  await Promise.all([...held.values()].map((holder) => new Promise((resolve) => holder.close(resolve))));
  return [...held.keys()];
}

/** One of them. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** What listens on a port; `null` where somebody else does. */
async function holderOf(port: number): Promise<Server | null> {
  const holder = createServer().listen(port, "127.0.0.1");
  try {
    await once(holder, "listening");
    return holder;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") return null;
    throw error;
  }
}
