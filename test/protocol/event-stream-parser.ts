/** One dispatched event. */
export interface ParsedEvent {
  readonly type: string;
  readonly data: string;
  readonly lastEventId: string;
}

/** Interprets an event stream as the HTML standard's section 9.2.6 says; `text` is latin1, so that bytes stay bytes. */
export function parseEventStream(text: string): ParsedEvent[] {
  const events: ParsedEvent[] = [];
  let type = "";
  let data = "";
  let lastEventId = "";
  const lines = text.split(/\r\n|\n|\r/);
  lines.pop(); // what follows the last line end is an incomplete line
  for (const line of lines) {
    if (line === "") {
      if (data !== "") events.push({ type: type === "" ? "message" : type, data: data.slice(0, -1), lastEventId });
      type = "";
      data = "";
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") type = value;
    else if (field === "data") data += `${value}\n`;
    else if (field === "id" && !value.includes("\0")) lastEventId = value;
  }
  return events;
}
