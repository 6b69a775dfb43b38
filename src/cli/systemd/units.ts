// The service and the socket of `streamdir systemd`, as text.

import { formatListen, type ListenAddress } from "../../net/listen-address.js";
import { hasPassword } from "../../net/storage-address.js";
import { formatValue, OPTIONS, type OptionName, type OptionSpec, type Settings } from "../../options.js";
import { LISTEN_BACKLOG } from "../../server.js";
import { EXIT } from "../command/verb.js";
import { quoteItem, quoteValue, quoteWord } from "./quoting.js";

/**
 * Where the service has its streams: below `/var/lib`, where systemd makes it, or a directory that is there; in none
 * where they are in a cluster.
 */
export type UnitDirectory =
  | { readonly kind: "state"; readonly name: string }
  | { readonly kind: "path"; readonly path: string }
  | { readonly kind: "none" };

/** What the units are made of. */
export interface UnitsPlan {
  readonly settings: Settings;
  /** Absolute path of Node, and of the command that it runs. */
  readonly node: string;
  readonly command: string;
  /** Who the service runs as; `null` for a user that systemd makes for it. */
  readonly user: string | null;
  readonly directory: UnitDirectory;
  /** By IP address or path. */
  readonly addresses: readonly Exclude<ListenAddress, { readonly kind: "fd" }>[];
}

/** The files that only root need read: systemd gives the service a copy. */
const CREDENTIALS = {
  auth: "auth.json",
  tlsCert: "tls-cert.pem",
  tlsKey: "tls-key.pem",
  clientCa: "client-ca.pem",
  natsCreds: "nats.creds",
} as const;
/** What the socket unit says instead. */
const OF_THE_SOCKET: readonly OptionName[] = ["host", "port", "listen", "unixMode"];
/**
 * How long a stop serves on unless the flags say: clients that ask often learn from an answer that their connection
 * ends, and none of them meets the end with a request on its way.
 */
const STOP_DELAY_MS = 1000;
/** More than the server may want for itself while it ends; systemd kills it then. */
const STOP_MARGIN_SECONDS = 30;

/** The unit of the service. It is renamed with its socket: both find each other by the name in front of the dot. */
export function serviceUnit(asked: UnitsPlan): string {
  const shutdownDelayMs = asked.settings.shutdownDelayMs || STOP_DELAY_MS;
  const plan = { ...asked, settings: { ...asked.settings, shutdownDelayMs } };
  const { settings, user, directory } = plan;
  const credentials = writtenOptions(settings).filter(isCredential);
  return lines(
    "[Unit]",
    "Description=streamdir, durable streams over HTTP",
    "Requires=%p.socket",
    "After=%p.socket",
    ...(directory.kind === "path" ? [`RequiresMountsFor=${quoteItem(directory.path)}`] : []),
    ...(directory.kind === "none" ? ["Wants=network-online.target", "After=network-online.target"] : []),
    "# However often a start was refused, the next one is tried",
    "StartLimitIntervalSec=0",
    "",
    "[Service]",
    "Type=notify",
    "# systemd-notify speaks for the server",
    "NotifyAccess=all",
    ...environmentOf(settings),
    `ExecStart=${execStart(plan)}`,
    ...reloadOf(settings),
    ...credentials.map((option) => `LoadCredential=${CREDENTIALS[option]}:${quoteValue(settings[option])}`),
    ...whoAndWhere(user, directory),
    "# The program that tells systemd how the server is ends with it, not before",
    "KillMode=mixed",
    "Restart=on-failure",
    directory.kind === "none"
      ? "# A start without a NATS server that answers ends at once"
      : "# A start while something else has the directory, like a backup, ends at once",
    "RestartSec=5",
    "# Wrong options stay wrong",
    `RestartPreventExitStatus=${EXIT.usage}`,
    "# A start after a crash reads the journal, and says when it is ready",
    "TimeoutStartSec=infinity",
    `TimeoutStopSec=${Math.ceil((shutdownDelayMs + settings.shutdownTimeoutMs) / 1000) + STOP_MARGIN_SECONDS}`,
    "WatchdogSec=60",
    "LimitNOFILE=262144",
    "",
    ...hardening(plan),
    "",
    "[Install]",
    "WantedBy=multi-user.target",
  );
}

/** The unit of the socket, which stays open when the service is started again: new connections wait for it. */
export function socketUnit({ settings, user, addresses }: UnitsPlan): string {
  const isUnix = addresses.some(({ kind }) => kind === "unix");
  return lines(
    "[Unit]",
    "Description=Where streamdir listens",
    "",
    "[Socket]",
    ...addresses.map((address) => `ListenStream=${quoteValue(streamOf(address))}`),
    ...(isUnix ? socketOwner(settings, user) : []),
    `Backlog=${LISTEN_BACKLOG}`,
    "NoDelay=yes",
    "",
    "[Install]",
    "WantedBy=sockets.target",
  );
}

/** An address as systemd has it: a zone is behind the port (systemd.socket(5)). */
function streamOf(address: UnitsPlan["addresses"][number]): string {
  if (address.kind === "unix") return address.path;
  const [host = "", zone] = address.host.split("%");
  const text = formatListen({ ...address, host });
  return zone === undefined ? text : `${text}%${zone}`;
}

/** A user's group comes along; without a user, sockets are root's. */
function socketOwner({ unixMode }: Settings, user: string | null): string[] {
  const mode = `SocketMode=0${unixMode}`;
  if (user !== null) return [mode, `SocketUser=${user}`];
  return [
    mode,
    ...(unixMode === "600" ? [] : ["# The group that the mode is for, like that of a proxy", "#SocketGroup="]),
  ];
}

function lines(...all: readonly string[]): string {
  return `${all.join("\n")}\n`;
}

function isCredential(option: OptionName): option is keyof typeof CREDENTIALS {
  return Object.hasOwn(CREDENTIALS, option);
}

/** The options that the service is started with. */
function writtenOptions(settings: Settings): OptionName[] {
  const options = Object.keys(OPTIONS) as OptionName[]; // keys forgets what they are
  return options.filter(
    (option) =>
      settings[option] !== OPTIONS[option].default &&
      (!OF_THE_SOCKET.includes(option) || (option === "unixMode" && settings.adminListen.includes("unix:"))) &&
      !(option === "storage" && hasPassword(settings.storage)),
  );
}

/** Whoever may look at processes sees their arguments, and units are for everybody to read. */
function environmentOf({ storage }: Settings): string[] {
  if (!hasPassword(storage)) return [];
  return [
    `# One line, ${OPTIONS.storage.env}= and the address with its password; for root alone: chmod 600`,
    "EnvironmentFile=/etc/streamdir/%p.env",
  ];
}

function execStart({ settings, node, command, directory }: UnitsPlan): string {
  const words = [node, command, "serve"].map(quoteWord);
  if (directory.kind === "state") words.push(`%S/${directory.name}`);
  else if (directory.kind === "path") words.push(quoteWord(directory.path));
  for (const option of writtenOptions(settings)) {
    const spec: OptionSpec = OPTIONS[option];
    const value = settings[option];
    if (isCredential(option)) words.push(`--${spec.flag}=%d/${CREDENTIALS[option]}`);
    else if (typeof value === "boolean") words.push(`--${value ? "" : "no-"}${spec.flag}`);
    else words.push(quoteWord(`--${spec.flag}=${formatValue(spec, value)}`));
  }
  return words.join(" \\\n  ");
}

/** A server without such files takes SIGHUP for the end of its terminal. */
function reloadOf(settings: Settings): string[] {
  if (settings.auth === "" && settings.tlsCert === "") return [];
  return [
    "# Reads key sets again. systemd copies the files below when the service starts: after a change of one of them,",
    "# restart the service. Its socket stays open: new connections wait for it.",
    "ExecReload=/bin/kill -HUP $MAINPID",
  ];
}

function whoAndWhere(user: string | null, directory: UnitDirectory): string[] {
  return [
    user === null ? "DynamicUser=yes" : `User=${user}`,
    ...(directory.kind === "state" ? [`StateDirectory=${directory.name}`, "StateDirectoryMode=0700"] : []),
    ...(directory.kind === "path" ? [`ReadWritePaths=${quoteItem(directory.path)}`] : []),
  ];
}

/** Without MemoryDenyWriteExecute=, as V8 writes machine code. */
function hardening({ node, command, directory }: UnitsPlan): string[] {
  const paths = [node, command, ...(directory.kind === "path" ? [directory.path] : [])];
  const livesInHome = paths.some((path) => /^\/(?:home|root|run\/user)\//.test(path));
  return [
    "UMask=0077",
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "AmbientCapabilities=",
    "ProtectSystem=strict",
    `ProtectHome=${livesInHome ? "read-only" : "yes"}`,
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "PrivateMounts=yes",
    "PrivateUsers=yes",
    "DevicePolicy=closed",
    "ProtectHostname=yes",
    "ProtectClock=yes",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes",
    "ProtectControlGroups=yes",
    "ProtectProc=invisible",
    "RemoveIPC=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "SystemCallArchitectures=native",
    // V8 asks for memory protection keys.
    "SystemCallFilter=@system-service @pkey",
    "SystemCallFilter=~@privileged @resources",
    "SystemCallErrorNumber=EPERM",
  ];
}
