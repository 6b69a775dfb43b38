// Why a server can't start.

import type { ListenError } from "../http/listen/listener.js";
import { beyondReach } from "../http/listen/plan.js";
import { formatListen } from "../net/listen-address.js";
import { oneLine } from "../ops/log.js";

/** What `createServer` throws when it can't start; the message is one line. */
export class StartError extends Error {
  override readonly name = "StartError";
  readonly code: "invalid-option" | "directory-unusable" | "storage-unusable" | "port-unusable";

  constructor(code: StartError["code"], message: string) {
    super(oneLine(message));
    this.code = code;
  }
}

const PORT_FAULTS: Readonly<Record<string, string>> = {
  EACCES: "this user may not use the port",
  EADDRINUSE: "the port is in use",
  EADDRNOTAVAIL: "the address is not this machine's",
  ENOTFOUND: "the host is not known",
};

const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  // Node says the same of a folder that is missing.
  EACCES: "its folder does not exist, or this user may not make a socket there",
  EADDRINUSE: "a server listens there, or a file that is no socket is in its place",
  EBADF: "it is not open in this process",
  EINVAL: "it is no socket that listens",
  ENOENT: "its folder does not exist",
  ENOTSOCK: "it is no socket",
};

/** The same of an address that can't be listened on; `tooFewFiles` is said where that is the reason. */
export function listenFault({ address, cause, reach }: ListenError, tooFewFiles: string): StartError {
  if (cause === null) return new StartError("invalid-option", beyondReach(address, reach));
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const known = code === "EMFILE" ? tooFewFiles : LISTEN_FAULTS[code];
  const why = known ?? (cause instanceof Error ? cause.message : String(cause));
  if (address.kind === "tcp")
    return new StartError(
      "port-unusable",
      `Cannot listen on ${address.host} port ${address.port}: ${PORT_FAULTS[code] ?? why}`,
    );
  return new StartError("port-unusable", `Cannot listen on ${formatListen(address)}: ${why}`);
}
