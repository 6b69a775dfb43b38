import type { OptionSpec } from "./spec.js";

/** Where the server listens. */
export const NETWORK_OPTIONS = {
  host: {
    flag: "host",
    env: "STREAMDIR_HOST",
    kind: "text",
    default: "127.0.0.1",
    placeholder: "ADDRESS",
    group: "Network",
    help: "address to listen on",
  },
  port: {
    flag: "port",
    env: "STREAMDIR_PORT",
    kind: "integer",
    default: 4437,
    min: 0,
    max: 65535,
    group: "Network",
    help: "port to listen on; 0 picks a free one",
  },
  listen: {
    flag: "listen",
    env: "STREAMDIR_LISTEN",
    kind: "listen",
    default: "",
    placeholder: "ADDRESSES",
    group: "Network",
    help: "HOST:PORT, unix:PATH, fd:N, by commas; instead of host and port",
  },
  adminListen: {
    flag: "admin-listen",
    env: "STREAMDIR_ADMIN_LISTEN",
    kind: "listen",
    default: "",
    placeholder: "ADDRESSES",
    group: "Network",
    help: "where /metrics and the probes are for everybody who reaches it",
  },
  unixMode: {
    flag: "unix-mode",
    env: "STREAMDIR_UNIX_MODE",
    kind: "mode",
    default: "600",
    group: "Network",
    help: "permissions of the sockets that unix:PATH makes, in octal",
  },
  prefix: {
    flag: "prefix",
    env: "STREAMDIR_PREFIX",
    kind: "path",
    default: "/v1/stream/",
    placeholder: "PATH",
    group: "Network",
    help: "URL path in front of every stream's name; begins and ends with /",
  },
} as const satisfies Record<string, OptionSpec>;
