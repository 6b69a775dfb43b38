// Reads Server-Sent Events from pieces of text.

/** @typedef {{ event: string, data: string, id: string }} SseEvent */

/** Cuts an event stream into events. What is not an event yet waits for the next piece. */
export class SseParser {
  #rest = "";

  /**
   * @param {string} text
   * @returns {SseEvent[]}
   */
  push(text) {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.map(eventOf).filter(({ event }) => event !== "");
  }
}

/** @param {string} block */
function eventOf(block) {
  const found = { event: "", data: "", id: "" };
  /** @type {string[]} */
  const data = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    const field = line.slice(0, colon);
    if (field === "event") found.event = value;
    else if (field === "id") found.id = value;
    else if (field === "data") data.push(value);
  }
  found.data = data.join("\n");
  return found;
}
