// The verb `ls`.

import { oneLine, visibleJson } from "../../../ops/log.js";
import type { Failure } from "../remote/failure.js";
import { clientTask, flag, type Session } from "../session/session.js";
import { listStreams, wantedBy, type ListedStream } from "./listing.js";

/** The row of the table of verbs. */
export const LS = clientTask({
  name: "ls",
  summary: "list streams in the order of their names",
  words: [{ placeholder: "PATTERN", isRequired: false }],
  flags: [flag("long", "flag", "", "with content type, bytes, last append, and whether it is closed or a fork", "l")],
  run: ls,
});

function ls(session: Session): Promise<Failure | null> {
  const { given, out, asJson } = session;
  return listStreams(session, wantedBy(given.word(0)), async (streams) => {
    const text = asJson
      ? streams.map((stream) => `${visibleJson(stream)}\n`).join("")
      : given.has("long")
        ? longLines(streams, (text) => out.shown(text))
        : streams.map(({ name }) => `${out.shown(name)}\n`).join("");
    return (await out.write(text)) === "written" ? "more" : "enough";
  });
}

/** In columns that are as wide as the page needs. */
function longLines(streams: readonly ListedStream[], shown: (text: string) => string): string {
  const rows = streams.map(({ name, contentType, bytes, lastAppendAt, closed, forkedFrom, isFork }) => [
    `${closed ? "c" : "-"}${isFork ? "f" : "-"}`,
    String(bytes ?? "?"),
    oneLine(lastAppendAt?.replace(/\.\d+Z$/, "Z") ?? "-"),
    oneLine(contentType),
    shown(forkedFrom === null ? name : `${name} < ${forkedFrom}`),
  ]);
  const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
  const written = ([state = "", bytes = "", at = "", type = "", name = ""]: readonly string[]): string => {
    const [, bytesWidth = 0, atWidth = 0, typeWidth = 0] = widths;
    return `${state}  ${bytes.padStart(bytesWidth)}  ${at.padEnd(atWidth)}  ${type.padEnd(typeWidth)}  ${name}\n`;
  };
  return rows.map(written).join("");
}
