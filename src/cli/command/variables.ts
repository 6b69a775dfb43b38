// Which environment variables the command knows.

import { OPTIONS } from "../../options.js";
import { nearest } from "./nearest.js";
import { quoted } from "./value.js";

/** The variables of a process. */
export type Env = Readonly<Record<string, string | undefined>>;

const PREFIX = "STREAMDIR_";
/** All that mean something: those of the commands that speak to a server, and those of the server's options. */
const KNOWN: readonly string[] = [
  ...["URL", "TOKEN", "CERT_FILE", "KEY_FILE"].map((name) => `${PREFIX}${name}`),
  ...Object.values(OPTIONS).map(({ env }) => env),
];

/** The variable that Kubernetes sets for every service, by the service's name. */
const SERVICE_HOST = /^(\w+)_SERVICE_HOST$/;
/** What follows the name of a service in the variables that Kubernetes sets for it. */
const OF_SERVICE = /^_(?:SERVICE_HOST|SERVICE_PORT(?:_.+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;
/** The value of such a variable that is also the name of an option, `STREAMDIR_PORT`. */
const SERVICE_ADDRESS = /^(?:tcp|udp|sctp):\/\//;

/** The refusal of the first variable of `env` that is ours by its name, and unknown; `null` when there is none. */
export function refusalOfVariables(env: Env): string | null {
  const ours = Object.keys(env).filter((name) => name.startsWith(PREFIX) && env[name] !== undefined);
  const unknown = ours.find((name) => !KNOWN.includes(name) && !isOfService(name, env));
  if (unknown === undefined) return null;
  const bare = unknown.slice(PREFIX.length);
  const names = KNOWN.map((name) => name.slice(PREFIX.length));
  // The flag that the variable sets is --server.
  const meant = bare === "SERVER" ? "URL" : nearest(bare, names);
  const hint = meant === null ? "streamdir --help lists them" : `did you mean ${PREFIX}${meant}?`;
  return `unknown environment variable ${quoted(unknown)}; ${hint}`;
}

/** Whether Kubernetes has set a variable for a service whose name begins with `streamdir`: no option is meant. */
export function isOfService(name: string, env: Env): boolean {
  if (KNOWN.includes(name) && !SERVICE_ADDRESS.test(env[name] ?? "")) return false;
  const services = Object.keys(env).flatMap((variable) => SERVICE_HOST.exec(variable)?.[1] ?? []);
  return services.some((service) => name.startsWith(service) && OF_SERVICE.test(name.slice(service.length)));
}
