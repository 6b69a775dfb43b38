/** What a request's headers say, as far as the protocol reads them. `null` is an absent header. */
export class RequestHeaders {
  host: string | null = null;
  origin: string | null = null;
  forwardedHost: string | null = null;
  forwardedProto: string | null = null;
  /** Whether there is an `Authorization`. */
  authenticated = false;
  /** From `Content-Length`. */
  contentLength: number | null = null;
  /** Whether the body comes in chunks, its length unknown. */
  chunked = false;
  ifNoneMatch: string | null = null;
  lastEventId: string | null = null;
  contentType: string | null = null;
  streamTtl: string | null = null;
  streamExpiresAt: string | null = null;
  streamClosed: string | null = null;
  streamSeq: string | null = null;
  streamForkedFrom: string | null = null;
  streamForkOffset: string | null = null;
  streamForkSubOffset: string | null = null;
  producerId: string | null = null;
  producerEpoch: string | null = null;
  producerSeq: string | null = null;
  /** The name of a header that may come once and came again. */
  repeated: string | null = null;

  /** Whether a body follows. */
  get hasBody(): boolean {
    return this.chunked || (this.contentLength !== null && this.contentLength > 0);
  }
}

/** The headers that may come once, and where they are kept. */
const SINGLETONS = {
  "content-type": "contentType",
  "stream-ttl": "streamTtl",
  "stream-expires-at": "streamExpiresAt",
  "stream-closed": "streamClosed",
  "stream-seq": "streamSeq",
  "stream-forked-from": "streamForkedFrom",
  "stream-fork-offset": "streamForkOffset",
  "stream-fork-sub-offset": "streamForkSubOffset",
  "producer-id": "producerId",
  "producer-epoch": "producerEpoch",
  "producer-seq": "producerSeq",
} as const;
const SINGLETON_FIELDS: ReadonlyMap<string, (typeof SINGLETONS)[keyof typeof SINGLETONS]> = new Map(Object.entries(SINGLETONS));

/** The names that {@link readHeader} itself knows. */
const OTHERS = [
  "host",
  "origin",
  "authorization",
  "content-length",
  "transfer-encoding",
  "if-none-match",
  "last-event-id",
  "x-forwarded-host",
  "x-forwarded-proto",
];

const KNOWN_LENGTHS = new Set([...SINGLETON_FIELDS.keys(), ...OTHERS].map((name) => name.length));
/** Whether a known name has this length: most of a browser's headers are passed over by that alone. */
const IS_KNOWN_LENGTH = Array.from({ length: Math.max(...KNOWN_LENGTHS) + 1 }, (_, length) => KNOWN_LENGTHS.has(length));

/**
 * Reads `IncomingMessage.rawHeaders`, names and values in turn, in one pass. The `headers` of Node would build an
 * object of all of them, and join or drop what is repeated.
 */
export function readHeaders(rawHeaders: readonly string[]): RequestHeaders {
  const headers = new RequestHeaders();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (IS_KNOWN_LENGTH[name.length] === true) readHeader(headers, name.toLowerCase(), rawHeaders[at + 1] ?? "");
  }
  return headers;
}

function readHeader(headers: RequestHeaders, name: string, value: string): void {
  switch (name) {
    case "host":
      headers.host ??= value;
      break;
    case "origin":
      headers.origin ??= value;
      break;
    case "authorization":
      headers.authenticated = true;
      break;
    case "content-length":
      headers.contentLength = Number(value);
      break;
    case "transfer-encoding":
      headers.chunked = true;
      break;
    case "if-none-match":
      headers.ifNoneMatch = headers.ifNoneMatch === null ? value : `${headers.ifNoneMatch}, ${value}`;
      break;
    case "last-event-id":
      headers.lastEventId ??= value;
      break;
    case "x-forwarded-host":
      headers.forwardedHost ??= value;
      break;
    case "x-forwarded-proto":
      headers.forwardedProto ??= value;
      break;
    default:
      readSingleton(headers, name, value);
  }
}

function readSingleton(headers: RequestHeaders, name: string, value: string): void {
  const field = SINGLETON_FIELDS.get(name);
  if (field === undefined) return;
  if (headers[field] !== null) headers.repeated = name;
  headers[field] = value;
}
