/** One answer, with what it is the answer to, as test/openapi judges it. */
export interface Answered {
  /** `null` when the request was no HTTP. */
  readonly method: string | null;
  readonly target: string;
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** The bytes as latin1; `null` where there are too many to keep. */
  readonly body: string | null;
}

interface Message {
  readonly startLine: string;
  readonly headers: readonly string[];
  /** What there is of it. */
  readonly body: string;
  /** Where the next message begins; `null` when this one is cut off or ends with its connection. */
  readonly next: number | null;
}

const MAX_BODY_CHARACTERS = 64 * 1024;

/** The answers of one connection: `sent` is what the client sent and `received` what it got, both latin1. */
export function exchangesOf(sent: string, received: string): Answered[] {
  const requests = requestLines(sent);
  const answers: Answered[] = [];
  for (let at: number | null = 0; at !== null && at < received.length;) {
    const { method = null, target = "" } = requests[answers.length] ?? {};
    const message = messageAt(received, at, (startLine) => isBodiless(method, statusOf(startLine)));
    if (message === null) break;
    const { startLine, headers, body } = message;
    const status = statusOf(startLine);
    if (status >= 200) answers.push({ method, target, status, headers, body: body.length > MAX_BODY_CHARACTERS ? null : body });
    at = message.next;
  }
  return answers;
}

function requestLines(sent: string): { method: string; target: string }[] {
  const lines: { method: string; target: string }[] = [];
  for (let at: number | null = 0; at !== null && at < sent.length;) {
    const request = messageAt(sent, at, () => false, "none");
    const [, method, target] = /^([!-~]+) ([!-~]+) HTTP\/1\.[01]$/.exec(request?.startLine ?? "") ?? [];
    if (request === null || method === undefined || target === undefined) break;
    lines.push({ method, target });
    at = request.next;
  }
  return lines;
}

function statusOf(startLine: string): number {
  return Number(startLine.split(" ")[1]);
}

function isBodiless(method: string | null, status: number): boolean {
  return method === "HEAD" || status < 200 || status === 204 || status === 304;
}

/** The message at `start`, as RFC 9112 (6.3) frames it; `null` when not even its head is whole. */
function messageAt(
  bytes: string,
  start: number,
  hasNoBody: (startLine: string) => boolean,
  unframed: "none" | "to the end" = "to the end",
): Message | null {
  const headEnd = bytes.indexOf("\r\n\r\n", start);
  if (headEnd === -1) return null;
  const [startLine = "", ...lines] = bytes.slice(start, headEnd).split("\r\n");
  const headers = lines.flatMap((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]);
  const from = headEnd + 4;
  if (hasNoBody(startLine)) return { startLine, headers, body: "", next: from };
  if (valueOf(headers, "transfer-encoding") !== null) return { startLine, headers, ...chunkedBody(bytes, from) };
  const length = valueOf(headers, "content-length");
  if (length === null)
    return { startLine, headers, ...(unframed === "none" ? { body: "", next: from } : { body: bytes.slice(from), next: null }) };
  const end = from + Number(length);
  return { startLine, headers, body: bytes.slice(from, end), next: end <= bytes.length ? end : null };
}

function valueOf(headers: readonly string[], name: string): string | null {
  const at = headers.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name);
  return at === -1 ? null : (headers[at + 1] ?? null);
}

function chunkedBody(bytes: string, from: number): { body: string; next: number | null } {
  let body = "";
  for (let at = from; ;) {
    const lineEnd = bytes.indexOf("\r\n", at);
    const size = lineEnd === -1 ? NaN : Number.parseInt(bytes.slice(at, lineEnd), 16);
    if (Number.isNaN(size)) return { body, next: null };
    if (size === 0) return { body, next: bytes.startsWith("\r\n", lineEnd + 2) ? lineEnd + 4 : null };
    body += bytes.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
  }
}
