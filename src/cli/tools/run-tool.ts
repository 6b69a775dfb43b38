// Runs one command of a tool.

import { EXIT, type Surroundings } from "../terms/verb.js";
import { readToolCall } from "./arguments.js";
import type { Tool } from "./tool.js";
import { commandHelp, toolHelp } from "./tool-help.js";

/** Runs what `args`, which follow the tool's name, ask for; resolves to the exit status. */
export async function runTool(tool: Tool, args: readonly string[], surroundings: Surroundings): Promise<number> {
  const call = readToolCall(tool, args, surroundings.env);
  switch (call.kind) {
    case "help":
      surroundings.stdout.write(call.command === null ? toolHelp(tool) : commandHelp(call.command));
      return EXIT.done;
    case "usage-error":
      surroundings.stderr.write(`streamdir: ${call.line}\n`);
      return EXIT.usage;
    case "run":
      return call.command.run(call.given, surroundings);
  }
}
