import type { AppendCommand } from "../../src/stream/rules/command.js";
import type { AnswerAppend, AppendOutcome } from "../../src/stream/rules/outcome.js";
import type { Registry } from "../../src/stream/registry.js";
import type { MaybePromise, Stream } from "../../src/stream/loaded/stream.js";

/** Appends to the stream of a name; resolves with the outcome. */
export function appendByName(registry: Registry, name: string, command: AppendCommand): Promise<AppendOutcome> {
  return outcomeOf((answer) => registry.append(name, command, answer));
}

/** Appends to a stream; resolves with the outcome. */
export function appendTo(stream: Stream, command: AppendCommand): Promise<AppendOutcome> {
  return outcomeOf((answer) => stream.append(command, answer));
}

function outcomeOf(append: (answer: AnswerAppend) => MaybePromise<void>): Promise<AppendOutcome> {
  return new Promise((resolve, reject) => {
    // What goes wrong is a rejection, now or later.
    Promise.resolve(append(resolve)).catch(reject);
  });
}
