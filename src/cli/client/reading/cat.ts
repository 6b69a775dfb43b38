// The verb `cat`: what a stream has, to its tail.

import { EXIT } from "../../command/verb.js";
import { failure, patternRefused, type Failure } from "../remote/failure.js";
import { clientTask, flag, NAME, streamCalled, type Session } from "../session/session.js";
import { UNREADABLE_JSON } from "./messages.js";
import { readToTail } from "./pages.js";
import { Printer, type Printed } from "./printer.js";

/** The row of the table of verbs. */
export const CAT = clientTask({
  name: "cat",
  summary: "print a stream from its beginning to its tail",
  words: [NAME],
  flags: [
    flag("from", "text", "OFFSET", "begin at this offset, as an answer or --json has given it"),
    flag("lines", "integer", "N", "print at most so many messages, or lines of a stream of bytes", "n"),
  ],
  run: cat,
});

async function cat(session: Session): Promise<Failure | null> {
  const { given, out } = session;
  const name = session.name(0);
  if (typeof name !== "string") return name;
  const limit = given.number("lines");
  if (limit === 0) return null;
  const printer = new Printer({ out, asJson: session.asJson, limit });
  let printed: Printed = "more";
  const failed = await readToTail(session, name, given.text("from") ?? "-1", async (page) => {
    printed = await printer.print(page);
    return printed === "more" ? "more" : "enough";
  });
  return failed === null ? endOf(printed, name) : patternRefused(failed, "cat", name);
}

/** What a verb that prints ends with: a reader that has gone wants no more, and that is no failure. */
export function endOf(printed: Printed, name: string): Failure | null {
  return printed === "unreadable" ? failure(EXIT.fault, `${streamCalled(name)}: ${UNREADABLE_JSON}`) : null;
}
