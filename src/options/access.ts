import type { OptionSpec } from "./spec.js";

/** Who may use the server, and from where. */
export const ACCESS_OPTIONS = {
  corsOrigin: {
    flag: "cors-origin",
    env: "STREAMDIR_CORS_ORIGIN",
    kind: "origins",
    default: "auto",
    placeholder: "ORIGINS",
    group: "Access",
    help: "browsers' origins; auto: * with auth, else loopback pages only",
  },
  auth: {
    flag: "auth",
    env: "STREAMDIR_AUTH",
    kind: "file",
    default: "",
    placeholder: "FILE",
    group: "Access",
    help: "JSON file that says who may do what (docs/auth.md)",
  },
  insecure: {
    flag: "insecure",
    env: "STREAMDIR_INSECURE",
    kind: "flag",
    default: false,
    group: "Access",
    help: "without auth, serve also those who come from beyond loopback",
  },
  allowHost: {
    flag: "allow-host",
    env: "STREAMDIR_ALLOW_HOST",
    kind: "hosts",
    default: "",
    placeholder: "HOSTS",
    group: "Access",
    help: "host names beside loopback's that requests may be for",
  },
  trustProxy: {
    flag: "trust-proxy",
    env: "STREAMDIR_TRUST_PROXY",
    kind: "networks",
    default: "",
    placeholder: "NETWORKS",
    group: "Access",
    help: "addresses or networks of proxies whose X-Forwarded headers count",
  },
} as const satisfies Record<string, OptionSpec>;
