// The verb `systemd`: prints units for systemd that run the server with the options given.

import { isIP } from "node:net";
import { join, normalize, resolve, sep } from "node:path";
import { isLoopbackAddress } from "../../net/host-name.js";
import { formatListen, type ListenAddress } from "../../net/listen-address.js";
import { OPTIONS, type Settings } from "../../options.js";
import {
  adminPlanOf,
  beyondReach,
  conflictWithStorage,
  isBeyond,
  planOf,
  withWholePaths,
  type ListenPlan,
} from "../../server.js";
import { quoted } from "../command/value.js";
import { EXIT, type Invocation, type Surroundings } from "../command/verb.js";
import { serviceUnit, socketUnit, type UnitDirectory, type UnitsPlan } from "./units.js";

const UNITS = { service: serviceUnit, socket: socketUnit } as const;
type UnitKind = keyof typeof UNITS;

/** Where the service has its streams when nobody names a directory. */
const SERVICE_DIR = "/var/lib/streamdir";
const USER = /^[A-Za-z_][A-Za-z0-9_-]{0,30}$/;
const STATE = /^\/var\/lib\/([A-Za-z0-9_][\w.-]{0,100})$/;
/** No unit file has a line break within a value, nor can systemd name one. */
const CONTROL = /[\u0000-\u001f\u007f]/;

/**
 * Prints a service and a socket unit for the options given, or with `--only` one of them; resolves to the exit status.
 * Nothing is read or changed. What the server would refuse at its start is refused here.
 */
export async function systemd(
  { dir, isDirImplied, settings, values = new Map() }: Invocation,
  { stdout, stderr }: Surroundings,
): Promise<number> {
  const refuse = (line: string): number => {
    stderr.write(`streamdir: ${line}\n`);
    return EXIT.usage;
  };
  const only = values.get("only")?.at(-1) ?? null;
  if (only !== null && !isUnitKind(only)) return refuse(`--only must be service or socket, not ${quoted(only)}`);
  const plan = unitsPlan(isDirImplied === true ? SERVICE_DIR : dir, settings, values.get("user")?.at(-1) ?? null);
  if (typeof plan === "string") return refuse(plan);
  const kinds: readonly UnitKind[] = only === null ? ["service", "socket"] : [only];
  const headed = kinds.map((kind) => `# /etc/systemd/system/streamdir.${kind}\n\n${UNITS[kind](plan)}`);
  stdout.write(headed.join("\n"));
  return EXIT.done;
}

function isUnitKind(word: string): word is UnitKind {
  return Object.hasOwn(UNITS, word);
}

/** What the units are made of, or why there can be none. */
function unitsPlan(dir: string, settings: Settings, user: string | null): UnitsPlan | string {
  const listening = planOf(settings);
  if ("fault" in listening) return listening.fault;
  const isFile = settings.storage === OPTIONS.storage.default;
  const conflict = conflictWithStorage(settings, isFile ? dir : undefined);
  if (conflict !== null) return conflict;
  if (user !== null && !USER.test(user)) return `--user must be a user's name, not ${quoted(user)}`;
  const addresses: UnitsPlan["addresses"][number][] = [];
  for (const address of listening.addresses) {
    const read = addressOf(address, listening.reach);
    if (typeof read === "string") return read;
    addresses.push(read);
  }
  const programs = { node: process.execPath, command: process.argv[1] ?? "" };
  const directory = isFile ? directoryOf(dir) : ({ kind: "none" } as const);
  if (directory.kind === "path" && user === null)
    return `${quoted(directory.path)} needs its owner as --user NAME; without, name one like /var/lib/streamdir`;
  if (directory.kind === "path" && /^\/(?:var\/)?tmp(?:\/|$)/.test(directory.path))
    return `the service has a /tmp of its own (PrivateTmp=yes), and would not see ${quoted(directory.path)}`;
  const adminPlan = adminPlanOf(settings);
  const admin = (adminPlan?.addresses ?? []).map(normal);
  const open = admin.find((address) => adminPlan !== null && isOpenTo(address, adminPlan.reach));
  if (open !== undefined && adminPlan !== null) return beyondReach(open, adminPlan.reach);
  for (const address of admin)
    if (address.kind === "unix" && !isWithin(address.path, directory))
      return `the service can make no socket at ${quoted(address.path)}: name one in its directory, or a port`;
  // A service has another working directory than who asks for its units, and systemd takes no path with `..` or `//`.
  const withPaths = { ...withWholePaths(settings, resolve), adminListen: admin.map(formatListen).join(",") };
  const texts = [...Object.values(withPaths).map(String), ...Object.values(programs), resolve(dir)];
  if (texts.some((text) => CONTROL.test(text))) return "no path or value may have a control character in a unit";
  return { settings: withPaths, ...programs, user, directory, addresses };
}

/** `address` as systemd has it, or why it has none. */
function addressOf(address: ListenAddress, reach: ListenPlan["reach"]): UnitsPlan["addresses"][number] | string {
  switch (address.kind) {
    case "fd":
      return `${formatListen(address)} is what the units are for: name the addresses that systemd shall listen on`;
    case "unix":
      return { ...address, path: resolve(address.path) };
    case "tcp": {
      const host = address.host === "localhost" ? "127.0.0.1" : address.host;
      const read = { ...address, host };
      if (isIP(host) === 0) return `systemd listens on IP addresses: write one instead of ${quoted(host)}`;
      if (address.port === 0) return "systemd needs a port, not 0";
      return reach === "loopback" && !isLoopbackAddress(host) ? beyondReach(read, reach) : read;
    }
  }
}

/** Whether others than `reach` says can reach an address. A name is looked up by the server alone, at its start. */
function isOpenTo(address: ListenAddress, reach: ListenPlan["reach"]): boolean {
  if (address.kind !== "tcp") return false;
  const { host } = address;
  return isIP(host) !== 0 && isBeyond({ address: host, family: `IPv${isIP(host)}`, port: address.port }, reach);
}

/** A socket's path without `.`, `..` and `//`. */
function normal(address: ListenAddress): ListenAddress {
  return address.kind === "unix" ? { ...address, path: normalize(address.path) } : address;
}

/** Whether the service may write there. */
function isWithin(path: string, directory: UnitDirectory): boolean {
  if (directory.kind === "none") return false;
  return path.startsWith(`${directory.kind === "path" ? directory.path : join("/var/lib", directory.name)}${sep}`);
}

function directoryOf(dir: string): UnitDirectory {
  const path = resolve(dir);
  const name = STATE.exec(path)?.[1];
  return name === undefined ? { kind: "path", path } : { kind: "state", name };
}
