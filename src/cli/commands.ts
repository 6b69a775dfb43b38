// The table of all commands.

import { CLIENT_VERBS } from "./client/client-verbs.js";
import { describedTask, describedTool, describedVerb, type DescribedCommand } from "./command/described.js";
import type { Tool } from "./command/task.js";
import { completions } from "./completions/completions.js";
import { TOKEN } from "./token.js";
import { VERBS } from "./verbs.js";

export { CLIENT_VERBS } from "./client/client-verbs.js";
export { VERBS } from "./verbs.js";

/** What the command can do with flags of its own, and no directory. */
export const TOOLS: readonly Tool[] = [TOKEN, completions(() => COMMANDS)];

/** All commands, as people are told of them. */
export const COMMANDS: readonly DescribedCommand[] = [
  ...VERBS.map(describedVerb),
  ...TOOLS.map(describedTool),
  ...CLIENT_VERBS.map(describedTask),
];
