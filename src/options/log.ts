import type { OptionSpec } from "./spec.js";

/** What is logged. */
export const LOG_OPTIONS = {
  logLevel: {
    flag: "log-level",
    env: "STREAMDIR_LOG_LEVEL",
    kind: "choice",
    default: "info",
    choices: ["debug", "info", "warn", "error", "silent"],
    placeholder: "LEVEL",
    group: "Log",
    help: "least severe message to log: debug, info, warn, error or silent",
  },
  logFormat: {
    flag: "log-format",
    env: "STREAMDIR_LOG_FORMAT",
    kind: "choice",
    default: "auto",
    choices: ["auto", "text", "json"],
    group: "Log",
    help: "auto is text on a terminal, json elsewhere",
  },
  accessLog: {
    flag: "access-log",
    env: "STREAMDIR_ACCESS_LOG",
    kind: "flag",
    default: false,
    group: "Log",
    help: "a line of JSON on standard output for each request",
  },
} as const satisfies Record<string, OptionSpec>;
