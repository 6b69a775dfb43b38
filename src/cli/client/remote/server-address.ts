// Reads where a server is: `--server`.

import { faultOfPrefix, OPTIONS } from "../../../options.js";
import { isLoopbackName } from "../../../net/host-name.js";
import { formatAuthority } from "../../../net/listen-address.js";
import { quoted } from "../../command/value.js";

/** Where requests go. */
export interface ServerAddress {
  readonly isSecure: boolean;
  /** Host name, or address without brackets and with its zone; `localhost` for a Unix socket. */
  readonly host: string;
  readonly port: number;
  /** `null` for a server with a port. */
  readonly socketPath: string | null;
  /** What stands in front of a stream's name; begins and ends with `/`. */
  readonly prefix: string;
  /** Whether what is sent stays on this machine or is encrypted. */
  readonly isPrivate: boolean;
}

/** The server when none is named: where `streamdir` listens by default. */
export const DEFAULT_SERVER = `http://127.0.0.1:${OPTIONS.port.default}`;

/** An address, or what is wrong with it: a line that names its flag, or the variable that set it. */
export type ParsedServer = ServerAddress | { readonly fault: string };

/** Where an address and a prefix come from, as messages name it. */
export interface CalledAs {
  readonly server: string;
  readonly prefix: string;
}

/** A zone of this machine's in an address (RFC 6874, 2), which Node's URL does not know. */
const ZONE = /^(https?:\/\/\[[0-9A-Fa-f:.]+)%25([\w.-]+)(\])/;

const FLAGS: CalledAs = { server: "--server", prefix: "--prefix" };

/**
 * Reads `URL` or `unix:PATH`. In front of names stands `prefix`; where it is `null`, the URL's path; without one, the
 * server's default. A URL with a name or a password is refused: all users of the machine see a secret in an argument.
 */
export function parseServer(text: string, prefix: string | null, called: CalledAs = FLAGS): ParsedServer {
  if (text.startsWith("unix:") && text !== "unix:") return onSocket(text.slice("unix:".length), prefix, called);
  // There may be a password before the @.
  const shown = text.includes("@") ? "" : `, not ${quoted(text)}`;
  const wrong = (words: string): ParsedServer => ({ fault: `${called.server} ${words}${shown}` });
  if (!/^https?:\/\//.test(text)) return wrong("must be a URL like http://127.0.0.1:4437, or unix:PATH");
  const url = urlOf(text);
  if (url === null) return wrong("must be a URL");
  if (url.username !== "" || url.password !== "")
    return { fault: `${called.server} must have no name and no password: see --token-file` };
  if (url.search !== "" || url.hash !== "") return wrong("must have no ? and no #");
  const path = prefix ?? (url.pathname === "/" ? OPTIONS.prefix.default : withSlash(url.pathname));
  if (faultOfPrefix(path) !== null)
    return prefix === null ? wrong(`must have ${PREFIX_RULE}`) : wrongPrefix(prefix, called);
  const isSecure = url.protocol === "https:";
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const zone = ZONE.exec(text)?.[2];
  return {
    isSecure,
    host: zone === undefined ? host : `${host}%${zone}`,
    port: url.port === "" ? (isSecure ? 443 : 80) : Number(url.port),
    socketPath: null,
    prefix: path,
    isPrivate: isSecure || isLoopbackName(host),
  };
}

/** Whether an address has a prefix of its own: a URL with a path. */
export function hasPath(text: string): boolean {
  return /^https?:\/\//.test(text) && (urlOf(text)?.pathname ?? "/") !== "/";
}

/** A URL without its zone; `null` where it is none. */
function urlOf(text: string): URL | null {
  const withoutZone = text.replace(ZONE, "$1$3");
  return URL.canParse(withoutZone) ? new URL(withoutZone) : null;
}

function onSocket(socketPath: string, prefix: string | null, called: CalledAs): ParsedServer {
  if (prefix !== null && faultOfPrefix(prefix) !== null) return wrongPrefix(prefix, called);
  const place = { isSecure: false, host: "localhost", port: 80, socketPath, isPrivate: true };
  return { ...place, prefix: prefix ?? OPTIONS.prefix.default };
}

const PREFIX_RULE = "a prefix that begins and ends with /, like /v1/stream/";

function wrongPrefix(prefix: string, called: CalledAs): ParsedServer {
  return { fault: `${called.prefix} must be ${PREFIX_RULE}, not ${quoted(prefix)}` };
}

function withSlash(path: string): string {
  return path.endsWith("/") ? path : `${path}/`;
}

/** An address as messages write it. */
export function formatServer({ isSecure, host, port, socketPath }: ServerAddress): string {
  if (socketPath !== null) return `unix:${socketPath}`;
  return `${isSecure ? "https" : "http"}://${formatAuthority(host, port)}`;
}
