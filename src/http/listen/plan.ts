// What the settings say about listening.

import { formatListen, parseListen, type ListenAddress } from "../../net/listen-address.js";
import { OPTIONS, type Settings } from "../../options.js";

/** Connections that may wait to be accepted, as far as the kernel allows: thousands of readers come back at once. */
export const LISTEN_BACKLOG = 4096;

/** The settings that say where a server listens, and over what. */
export type ListenSettings = Pick<
  Settings,
  "host" | "port" | "listen" | "unixMode" | "auth" | "insecure" | "tlsCert" | "tlsKey" | "clientCa"
>;

/** The files that a server proves with who it is. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** The certificate of those who sign its clients'; `null` where clients are not asked for one. */
  readonly clientCa: string | null;
}

/** Where a server will listen, and over what. */
export interface ListenPlan {
  readonly addresses: readonly ListenAddress[];
  readonly unixMode: number;
  /** Whether only this machine's own programs may reach it. */
  readonly onlyLoopback: boolean;
  /** `null` for a server without TLS. */
  readonly tls: TlsFiles | null;
}

/** Settings that do not go together, in words. */
export interface PlanFault {
  readonly fault: string;
}

/** What `settings` say, each of which is valid by itself. */
export function planOf(settings: ListenSettings): ListenPlan | PlanFault {
  const { host, port, listen, tlsCert, tlsKey, clientCa } = settings;
  if (listen !== "" && (host !== OPTIONS.host.default || port !== OPTIONS.port.default))
    return { fault: "listen says where to listen instead of host and port: leave these out, or listen" };
  if ((tlsCert === "") !== (tlsKey === ""))
    return { fault: "tlsCert and tlsKey belong together: HTTPS needs the certificate and its private key" };
  if (clientCa !== "" && tlsCert === "")
    return { fault: "clientCa needs tlsCert and tlsKey: only over TLS clients have certificates" };
  return {
    addresses: (listen === "" ? null : parseListen(listen)) ?? [{ kind: "tcp", host, port }],
    unixMode: Number.parseInt(settings.unixMode, 8),
    onlyLoopback: settings.auth === "" && !settings.insecure,
    tls: tlsCert === "" ? null : { cert: tlsCert, key: tlsKey, clientCa: clientCa === "" ? null : clientCa },
  };
}

/** Why an address that can be reached from beyond loopback is refused. */
export function beyondLoopback(address: ListenAddress): string {
  return (
    `Cannot listen on ${formatListen(address)}: everybody who reaches it could read and write. ` +
    "Say with --auth who may do what, or with --insecure that anybody may"
  );
}
