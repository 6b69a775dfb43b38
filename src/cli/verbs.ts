// The table of the commands on a directory. What runs each is loaded when it runs.

import type { Verb } from "./command/verb.js";

const FORCE_UNLOCK = { flag: "force-unlock", help: "take the lock of a process that has ended, unseen from here" };

/** What the command can do; the first is meant when none is named. */
export const VERBS: readonly [Verb, ...Verb[]] = [
  {
    name: "serve",
    summary: "serve the streams of DIR over HTTP until a signal stops it",
    switches: [FORCE_UNLOCK],
    takesOptions: true,
    run: async (...given) => (await import("./serve.js")).serve(...given),
  },
  {
    name: "verify",
    summary: "compare all that DIR holds with its checksums; no server may have it open",
    switches: [{ flag: "json", help: "a finding a line, and the summary, as JSON" }, FORCE_UNLOCK],
    run: async (...given) => (await import("./verify.js")).verify(...given),
  },
  {
    name: "repair",
    summary: "say what can safely be done about what verify finds, and do it with --yes",
    switches: [
      { flag: "yes", help: "do it" },
      { flag: "accept-loss", value: "NAME", help: "serve this stream although it may have lost its end; * and ** too" },
      { flag: "json", help: "each thing, and the summary, as JSON" },
      FORCE_UNLOCK,
    ],
    run: async (...given) => (await import("./repair.js")).repair(...given),
  },
  {
    name: "backup",
    summary: "copy DIR as it is now, also while a server has it open; again, what is new",
    second: "DEST",
    switches: [FORCE_UNLOCK],
    run: async (...given) => (await import("./backup.js")).backup(...given),
  },
  {
    name: "upgrade",
    summary: "bring DIR to the format of this version; keep what that changes",
    switches: [{ flag: "dry-run", help: "only say what would be done" }, FORCE_UNLOCK],
    run: async (...given) => (await import("./upgrade.js")).upgrade(...given),
  },
  {
    name: "systemd",
    summary: "print units for systemd that serve DIR with these flags",
    switches: [
      { flag: "user", value: "NAME", help: "who the service runs as; without, a user that systemd makes for it" },
      { flag: "only", value: "UNIT", help: "print one of both: service or socket" },
    ],
    takesOptions: true,
    run: async (...given) => (await import("./systemd/systemd.js")).systemd(...given),
  },
];
