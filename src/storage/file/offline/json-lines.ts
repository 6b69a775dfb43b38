import { readFully, type Files } from "../disk/files.js";

const STEP_BYTES = 1024 * 1024;
/** A longer line is taken for no message. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
const LINE_FEED = 0x0a;
const COMMA = 0x2c;

/** Whether segments of these lengths are framed as those of a JSON stream: every line a JSON value and a comma. */
export async function isJsonFramed(
  files: Files,
  segments: readonly { readonly path: string; readonly length: number }[],
): Promise<boolean> {
  for (const { path, length } of segments) if (!(await isFramed(files, path, length))) return false;
  return segments.length > 0;
}

async function isFramed(files: Files, path: string, length: number): Promise<boolean> {
  const file = await files.open(path, "read");
  try {
    let rest = Buffer.alloc(0);
    for (let offset = 0; offset < length; offset += STEP_BYTES) {
      const bytes = Buffer.concat([rest, await readFully(file, offset, Math.min(STEP_BYTES, length - offset))]);
      const end = bytes.lastIndexOf(LINE_FEED) + 1;
      if (!areMessages(bytes.subarray(0, end))) return false;
      rest = bytes.subarray(end);
      if (rest.length > MAX_LINE_BYTES) return false;
    }
    return rest.length === 0;
  } finally {
    await file.close();
  }
}

function areMessages(lines: Buffer): boolean {
  for (let start = 0; start < lines.length;) {
    const end = lines.indexOf(LINE_FEED, start);
    if (lines[end - 1] !== COMMA || !isJson(lines.toString("utf8", start, end - 1))) return false;
    start = end + 1;
  }
  return true;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    // That is the answer.
    return false;
  }
}
