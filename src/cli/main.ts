/** The command `streamdir`: chooses the verb, prints what is asked for, and sets the exit status. */

import { parseStorage } from "../net/storage-address.js";
import { oneLine } from "../ops/log.js";
import { packageVersion } from "../ops/version.js";
import type { ClientTask } from "./client/session/session.js";
import { parseCommand } from "./config.js";
import { isDirectory } from "./existing-directory.js";
import { tuneHeap } from "./heap.js";
import { helpText } from "./help.js";
import { parseLoneTask, parseTask } from "./command/task.js";
import { loneTaskHelp, taskHelp } from "./command/task-help.js";
import type { Tool } from "./command/task.js";
import { endByLostTerminal } from "./command/lost-terminal.js";
import { endByUnheardSignals } from "./command/stop-signals.js";
import { refusalOfVariables } from "./command/variables.js";
import { EXIT, LAST_LINE_MS } from "./command/verb.js";
import { VERBS } from "./verbs.js";

/** What kept the output from being written; `null` where nothing did, or its reader has gone. */
let lost: Error | null = null;
let isServer = false;

async function main(): Promise<number> {
  const args = process.argv.slice(2);
  if (args[0] === "help") return runHelp(args.slice(1));
  // A start of the server need not load all that speaks to one.
  if (VERBS.some(({ name }) => name === args[0])) return runVerb(args);
  const { TOOLS, CLIENT_VERBS } = await import("./commands.js");
  const tool = TOOLS.find(({ name }) => name === args[0]);
  if (tool !== undefined) return runTool(tool, args.slice(1));
  const task = CLIENT_VERBS.find(({ name }) => name === args[0]);
  return task === undefined ? runVerb(args, [...TOOLS, ...CLIENT_VERBS]) : runClient(task, args.slice(1));
}

/** `help VERB` is `VERB --help`: a directory of that name is `./help`. */
async function runHelp(words: readonly string[]): Promise<number> {
  const [word] = words;
  const { TOOLS, CLIENT_VERBS } = await import("./commands.js");
  const tool = TOOLS.find(({ name }) => name === word);
  if (tool !== undefined) return runTool(tool, [...words.slice(1), "--help"]);
  if (words.length > 1) return refuse(`streamdir help takes one command, not "${oneLine(words.join(" "))}"`);
  const task = CLIENT_VERBS.find(({ name }) => name === word);
  if (task !== undefined) return runClient(task, ["--help"]);
  const isVerb =
    word === undefined || ["help", "--help", "-h"].includes(word) || VERBS.some(({ name }) => name === word);
  return isVerb
    ? runVerb([...words, "--help"])
    : refuse(`unknown command "${oneLine(word)}"; streamdir --help lists them`);
}

async function runClient(task: ClientTask, args: readonly string[]): Promise<number> {
  const command = parseLoneTask(task, args, process.env);
  switch (command.kind) {
    case "help":
      process.stdout.write(loneTaskHelp(task));
      return EXIT.done;
    case "usage-error":
      return refuse(command.line);
    case "run":
      return unlessRefused(() => task.run(command.given, process));
  }
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
      return unlessRefused(() => command.task.run(command.given, process));
  }
}

/** `others` are commands that a word may be meant as where it is no verb. */
async function runVerb(args: readonly string[], others: readonly { readonly name: string }[] = []): Promise<number> {
  const command = parseCommand(args, process.env, VERBS, others);
  switch (command.kind) {
    case "help":
      process.stdout.write(await helpOf(args[0]));
      return EXIT.done;
    case "version":
      process.stdout.write(`${packageVersion()}\n`);
      return EXIT.done;
    case "usage-error":
      return refuse(command.line);
    case "run":
      if (command.lineUnlessThere !== null && !(await isDirectory(command.dir))) return refuse(command.lineUnlessThere);
      isServer = command.verb.name === VERBS[0].name;
      tuneHeap(process.execArgv, parseStorage(command.settings.storage)?.kind === "nats" ? "cluster" : "directory");
      return command.verb.run({ ...command, version: packageVersion() }, process);
  }
}

/** Of one verb, or of the whole command: that has the options of the first verb, too. */
async function helpOf(name: string | undefined): Promise<string> {
  const { COMMANDS, CLIENT_VERBS, TOOLS } = await import("./commands.js");
  const [implied, ...others] = VERBS;
  const isOther = name !== implied.name && others.some((verb) => verb.name === name);
  const described = isOther ? COMMANDS.find((command) => command.name === name) : undefined;
  return described === undefined ? helpText(VERBS, TOOLS, CLIENT_VERBS) : loneTaskHelp(described);
}

/** A variable with a typing mistake may have been meant to name another server, or another auth file. */
async function unlessRefused(run: () => Promise<number>): Promise<number> {
  const refusal = refusalOfVariables(process.env);
  return refusal === null ? run() : refuse(refusal);
}

function refuse(line: string): number {
  process.stderr.write(`streamdir: ${line}\n`);
  return EXIT.usage;
}

/** Ends a verb that rejects, and whatever it has left open, once one line has said so. */
function crashed(error: unknown): number {
  const said = error instanceof Error ? error : new Error(String(error));
  // That is nobody's fault, and bin/start.js says in one line what to do about it.
  if ("code" in said && (said.code === "EMFILE" || said.code === "ENFILE")) throw said;
  const line = `streamdir: this is a fault of streamdir: ${oneLine(said.stack ?? said.message)}\n`;
  process.stderr.write(line, () => process.exit(EXIT.crash));
  return EXIT.crash;
}

endByUnheardSignals(process);
endByLostTerminal(process);
// The reader of the output may go away; that must not end a server.
process.stdout.on("error", (error) => {
  if (!("code" in error && error.code === "EPIPE")) lost ??= error;
});
process.stderr.on("error", () => {});
// Only now is known what became of an output that is a pipe.
process.once("exit", (status) => {
  if (status !== EXIT.done || lost === null || isServer) return;
  process.stderr.write(`streamdir: the output can't be written: ${oneLine(lost.message)}\n`);
  process.exitCode = EXIT.fault;
});

// The server's timers do not keep the process alive, but its last work may be waiting for one of them.
const alive = setInterval(() => {}, 60_000);
// Sets the status instead of calling `exit`, so that output to a pipe is flushed before the process ends.
process.exitCode = await main()
  .catch(crashed)
  .finally(() => clearInterval(alive));
// What is left of a server is what nobody reads of its output.
if (isServer) setTimeout(() => process.exit(), LAST_LINE_MS).unref();
