// The table of all commands.

import { BACKUP } from "./backup.js";
import { CLIENT_VERBS } from "./client/client-verbs.js";
import { describedTask, describedTool, describedVerb, type DescribedCommand } from "./command/described.js";
import type { Tool } from "./command/task.js";
import type { Verb } from "./command/verb.js";
import { completions } from "./completions/completions.js";
import { repair } from "./repair.js";
import { serve } from "./serve.js";
import { SYSTEMD } from "./systemd/systemd.js";
import { TOKEN } from "./token.js";
import { upgrade } from "./upgrade.js";
import { verify } from "./verify.js";

export { CLIENT_VERBS } from "./client/client-verbs.js";

const FORCE_UNLOCK = { flag: "force-unlock", help: "take the lock of a process that has ended, unseen from here" };

/** What the command can do; the first is meant when none is named. */
export const VERBS: readonly [Verb, ...Verb[]] = [
  {
    name: "serve",
    summary: "serve the streams of DIR over HTTP until a signal stops it",
    switches: [FORCE_UNLOCK],
    takesOptions: true,
    run: serve,
  },
  {
    name: "verify",
    summary: "compare all that DIR holds with its checksums; no server may have it open",
    switches: [{ flag: "json", help: "a finding a line, and the summary, as JSON" }, FORCE_UNLOCK],
    run: verify,
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
    run: repair,
  },
  { ...BACKUP, switches: [FORCE_UNLOCK] },
  {
    name: "upgrade",
    summary: "bring DIR to the format of this version; keep what that changes",
    switches: [{ flag: "dry-run", help: "only say what would be done" }, FORCE_UNLOCK],
    run: (invocation, surroundings) => upgrade(invocation, surroundings),
  },
  SYSTEMD,
];

/** What the command can do with flags of its own, and no directory. */
export const TOOLS: readonly Tool[] = [TOKEN, completions(() => COMMANDS)];

/** All commands, as people are told of them. */
export const COMMANDS: readonly DescribedCommand[] = [
  ...VERBS.map(describedVerb),
  ...TOOLS.map(describedTool),
  ...CLIENT_VERBS.map(describedTask),
];
