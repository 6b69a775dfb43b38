// Frames events for HTTP/1.1, where what has no length is sent in chunks (RFC 9112, 7.1). Node would do that for each
// reader anew, with three writes instead of one.

import type { Outbound } from "../node/message.js";

/** What ends the chunks. */
export const LAST_CHUNK: Buffer = Buffer.from("0\r\n\r\n", "latin1");

const LINE_END = Buffer.from("\r\n", "latin1");
/** What is longer is not copied: its frame is written around it. */
const MAX_COPIED_BYTES = 256 * 1024;

/** The chunks of events that are still somewhere, for all readers who are sent the same. */
const chunks = new WeakMap<Buffer, Buffer>();

/** Events as one chunk. */
function chunkOf(events: Buffer): Buffer {
  const known = chunks.get(events);
  if (known !== undefined) return known;
  const chunk = Buffer.concat([sizeLine(events), events, LINE_END]);
  chunks.set(events, chunk);
  return chunk;
}

function sizeLine({ length }: Buffer): Buffer {
  return Buffer.from(`${length.toString(16)}\r\n`, "latin1");
}

/** Writes events as a chunk; returns whether more has room. */
export function writeChunk(out: Pick<Outbound, "write">, events: Buffer): boolean {
  if (events.length <= MAX_COPIED_BYTES) return out.write(chunkOf(events));
  out.write(sizeLine(events));
  out.write(events);
  return out.write(LINE_END);
}

/** The memory that waits where events are written by {@link writeChunk}: that of their chunk, once there is one. */
export function heldBy(events: Buffer): Buffer {
  return chunks.get(events) ?? events;
}
