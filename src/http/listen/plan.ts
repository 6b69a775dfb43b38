// What the settings say about listening.

import { isAbsolute, resolve, sep } from "node:path";
import { formatListen, parseListen, type ListenAddress } from "../../net/listen-address.js";
import { OPTIONS, type Settings } from "../../options.js";
import type { Reach } from "./reach.js";

/** Connections that may wait to be accepted, as far as the kernel allows: thousands of readers come back at once. */
export const LISTEN_BACKLOG = 4096;

/** The longest path of a Unix socket that all platforms have. */
const MAX_SOCKET_PATH_BYTES = 103;

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
  /** Who may be able to reach it. */
  readonly reach: Reach;
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
    return { fault: "--listen says where to listen instead of --host and --port: leave these out, or --listen" };
  if ((tlsCert === "") !== (tlsKey === ""))
    return { fault: "--tls-cert and --tls-key belong together: HTTPS needs the certificate and its private key" };
  if (clientCa !== "" && tlsCert === "")
    return { fault: "--client-ca needs --tls-cert and --tls-key: only over TLS clients have certificates" };
  return {
    addresses: (listen === "" ? null : addressesOf(listen)) ?? [{ kind: "tcp", host, port }],
    unixMode: Number.parseInt(settings.unixMode, 8),
    reach: settings.auth === "" && !settings.insecure ? "loopback" : "everybody",
    tls: tlsCert === "" ? null : { cert: tlsCert, key: tlsKey, clientCa: clientCa === "" ? null : clientCa },
  };
}

/** The addresses of `--admin-listen`, which ask for no credential; `null` without one. */
export function adminPlanOf({ adminListen, unixMode, insecure }: AdminListenSettings): ListenPlan | null {
  const addresses = adminListen === "" ? null : addressesOf(adminListen);
  if (addresses === null) return null;
  return { addresses, unixMode: Number.parseInt(unixMode, 8), reach: insecure ? "everybody" : "private", tls: null };
}

/** The addresses of `text`, sockets by their whole paths: they are removed at a stop, maybe from another directory. */
function addressesOf(text: string): readonly ListenAddress[] | null {
  const whole = (address: ListenAddress): ListenAddress =>
    address.kind === "unix" ? { ...address, path: wholeOrShort(address.path) } : address;
  return parseListen(text)?.map(whole) ?? null;
}

/** Node would cut a path off that is too long; a relative one may be short enough. */
function wholeOrShort(path: string): string {
  const whole = wholePath(path);
  return Buffer.byteLength(whole) > MAX_SOCKET_PATH_BYTES ? path : whole;
}

/** A file's path, the same from every working directory; `..` stays for the system, which follows links before it. */
export function wholePath(path: string): string {
  if (isAbsolute(path)) return path;
  return path.split(sep).includes("..") ? `${process.cwd()}${sep}${path}` : resolve(path);
}

/** The settings that say where a server may be watched. */
export type AdminListenSettings = Pick<Settings, "adminListen" | "unixMode" | "insecure">;

/** Why an address is refused that others can reach than `reach` says. */
export function beyondReach(address: ListenAddress, reach: Reach): string {
  if (reach === "private")
    return (
      `Cannot listen on ${formatListen(address)}: --admin-listen asks for no credential, and takes addresses of ` +
      "loopback and of private networks. Say with --insecure that everybody who reaches it may see the metrics"
    );
  return (
    `Cannot listen on ${formatListen(address)}: everybody who reaches it could read and write. ` +
    "Say with --auth who may do what, or with --insecure that anybody may"
  );
}

/** The URL of the first address that has one. A Unix socket has none: its clients name any host. */
export function urlOf(
  listeners: readonly { readonly isUnix: boolean; readonly authority: string }[],
  { tls }: ListenPlan,
  prefix: string,
): string {
  const first = listeners.find(({ isUnix }) => !isUnix);
  return first === undefined
    ? `http://localhost${prefix}`
    : `${tls === null ? "http" : "https"}://${first.authority}${prefix}`;
}
