// Warns where more than this machine may reach a server that asks nobody who they are.

import type { Log } from "../ops/log.js";
import type { Settings } from "../options.js";

/**
 * Without auth a server listens on loopback alone; but who says which proxy to trust, or by which names it is reached,
 * has a proxy there that may let in anybody. `insecure` says that this is meant.
 */
export function warnOfOpenAccess({ auth, insecure, trustProxy, allowHost, clientCa }: Settings, log: Log): void {
  // Clients that show none are let in, too.
  if (auth === "" && clientCa !== "")
    log.warn("client certificates give no rights without --auth, and clients without one have all");
  if (auth !== "" || insecure || (trustProxy === "" && allowHost === "")) return;
  log.warn(
    "whoever a proxy lets in may use every stream: give --auth, or --insecure where the proxy asks who they are",
  );
}
