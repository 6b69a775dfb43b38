/** The command `streamdir`: chooses the verb, prints what is asked for, and sets the exit status. */

import { packageVersion } from "../ops/version.js";
import { BACKUP } from "./backup.js";
import { parseCommand } from "./config.js";
import { isDirectory } from "./existing-directory.js";
import { boundHeapGrowth } from "./heap.js";
import { helpText } from "./help.js";
import { repair } from "./repair.js";
import { serve } from "./serve.js";
import { SYSTEMD } from "./systemd/systemd.js";
import { parseTask } from "./command/task.js";
import { taskHelp } from "./command/task-help.js";
import type { Tool } from "./command/task.js";
import { TOKEN } from "./token.js";
import { EXIT } from "./command/verb.js";
import { upgrade } from "./upgrade.js";
import { verify } from "./verify.js";
import type { Verb } from "./command/verb.js";

const FORCE_UNLOCK = {
  flag: "force-unlock",
  help: "take away the lock of a process that can't be seen from here and has surely ended",
};

/** What the command can do; the first is meant when none is named. */
const VERBS: readonly [Verb, ...Verb[]] = [
  {
    name: "serve",
    summary: "serve the streams of DIR over HTTP until a signal stops it",
    switches: [FORCE_UNLOCK],
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
const TOOLS: readonly Tool[] = [TOKEN];

async function main(): Promise<number> {
  const args = process.argv.slice(2);
  const tool = TOOLS.find(({ name }) => name === args[0]);
  return tool === undefined ? runVerb(args) : runTool(tool, args.slice(1));
}

async function runTool(tool: Tool, args: readonly string[]): Promise<number> {
  const command = parseTask(tool, args, process.env);
  switch (command.kind) {
    case "help":
      process.stdout.write(taskHelp(tool, command.task));
      return EXIT.done;
    case "usage-error":
      return refuse(command.line);
    case "run":
      return command.task.run(command.given, process);
  }
}

async function runVerb(args: readonly string[]): Promise<number> {
  const command = parseCommand(args, process.env, VERBS, TOOLS);
  switch (command.kind) {
    case "help":
      process.stdout.write(helpText(VERBS, TOOLS));
      return EXIT.done;
    case "version":
      process.stdout.write(`${packageVersion()}\n`);
      return EXIT.done;
    case "usage-error":
      return refuse(command.line);
    case "run":
      if (command.lineUnlessThere !== null && !(await isDirectory(command.dir))) return refuse(command.lineUnlessThere);
      boundHeapGrowth(process.execArgv);
      return command.verb.run({ ...command, version: packageVersion() }, process);
  }
}

function refuse(line: string): number {
  process.stderr.write(`streamdir: ${line}\n`);
  return EXIT.usage;
}

// The reader of the output may go away; that must not end a server.
process.stdout.on("error", () => {});
process.stderr.on("error", () => {});

// The server's timers do not keep the process alive, but its last work may be waiting for one of them.
const alive = setInterval(() => {}, 60_000);
// Sets the status instead of calling `exit`, so that output to a pipe is flushed before the process ends.
process.exitCode = await main().finally(() => clearInterval(alive));
