/** What a request's headers say, as far as the protocol reads them. `null` is an absent header. */
export class RequestHeaders {
  host: string | null = null;
  origin: string | null = null;
  forwardedHost: string | null = null;
  forwardedProto: string | null = null;
  /** Whether there is an `Authorization`. */
  authenticated = false;
  /** Whether there is an `Expect`. */
  expects = false;
  /** From `Content-Length`. */
  contentLength: number | null = null;
  /** The codings of a body whose length is unknown; several headers are one list. */
  transferEncoding: string | null = null;
  /** Whether there is an `Upgrade`. */
  upgrades = false;
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
    return this.transferEncoding !== null || (this.contentLength !== null && this.contentLength > 0);
  }
}

/** A header that the protocol reads. */
interface KnownHeader {
  /** In lower case, and as most clients write it that do not send lower case. */
  readonly name: string;
  readonly title: string;
  readonly take: (headers: RequestHeaders, value: string) => void;
}

function header(name: string, take: KnownHeader["take"]): KnownHeader {
  return { name, title: name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()), take };
}

/** A header that may come once; `get` is what came before. */
function singleton(
  name: string,
  get: (headers: RequestHeaders) => string | null,
  set: KnownHeader["take"],
): KnownHeader {
  return header(name, (headers, value) => {
    if (get(headers) !== null) headers.repeated = name;
    set(headers, value);
  });
}

/** A list that came in several headers, in one. */
function listed(before: string | null, value: string): string {
  return before === null ? value : `${before}, ${value}`;
}

/** Each has functions of its own: looking a field up by its name costs more than everything else here. */
const KNOWN_HEADERS: readonly KnownHeader[] = [
  singleton(
    "host",
    ({ host }) => host,
    (headers, value) => void (headers.host = value),
  ),
  header("origin", (headers, value) => void (headers.origin ??= value)),
  header("authorization", (headers) => void (headers.authenticated = true)),
  header("expect", (headers) => void (headers.expects = true)),
  header("content-length", (headers, value) => void (headers.contentLength = Number(value))),
  header(
    "transfer-encoding",
    (headers, value) => void (headers.transferEncoding = listed(headers.transferEncoding, value)),
  ),
  header("upgrade", (headers) => void (headers.upgrades = true)),
  header("if-none-match", (headers, value) => void (headers.ifNoneMatch = listed(headers.ifNoneMatch, value))),
  header("last-event-id", (headers, value) => void (headers.lastEventId ??= value)),
  header("x-forwarded-host", (headers, value) => void (headers.forwardedHost ??= value)),
  header("x-forwarded-proto", (headers, value) => void (headers.forwardedProto ??= value)),
  singleton(
    "content-type",
    ({ contentType }) => contentType,
    (headers, value) => void (headers.contentType = value),
  ),
  singleton(
    "stream-ttl",
    ({ streamTtl }) => streamTtl,
    (headers, value) => void (headers.streamTtl = value),
  ),
  singleton(
    "stream-expires-at",
    ({ streamExpiresAt }) => streamExpiresAt,
    (headers, value) => void (headers.streamExpiresAt = value),
  ),
  singleton(
    "stream-closed",
    ({ streamClosed }) => streamClosed,
    (headers, value) => void (headers.streamClosed = value),
  ),
  singleton(
    "stream-seq",
    ({ streamSeq }) => streamSeq,
    (headers, value) => void (headers.streamSeq = value),
  ),
  singleton(
    "stream-forked-from",
    ({ streamForkedFrom }) => streamForkedFrom,
    (headers, value) => void (headers.streamForkedFrom = value),
  ),
  singleton(
    "stream-fork-offset",
    ({ streamForkOffset }) => streamForkOffset,
    (headers, value) => void (headers.streamForkOffset = value),
  ),
  singleton(
    "stream-fork-sub-offset",
    ({ streamForkSubOffset }) => streamForkSubOffset,
    (headers, value) => void (headers.streamForkSubOffset = value),
  ),
  singleton(
    "producer-id",
    ({ producerId }) => producerId,
    (headers, value) => void (headers.producerId = value),
  ),
  singleton(
    "producer-epoch",
    ({ producerEpoch }) => producerEpoch,
    (headers, value) => void (headers.producerEpoch = value),
  ),
  singleton(
    "producer-seq",
    ({ producerSeq }) => producerSeq,
    (headers, value) => void (headers.producerSeq = value),
  ),
];

/** The known headers by the length of their names: that alone rules out most of a browser's. */
const BY_LENGTH: readonly (readonly KnownHeader[])[] = Array.from(
  { length: Math.max(...KNOWN_HEADERS.map(({ name }) => name.length)) + 1 },
  (_, length) => KNOWN_HEADERS.filter(({ name }) => name.length === length),
);

/**
 * Reads `IncomingMessage.rawHeaders`, names and values in turn, in one pass. Node's own `headers` would build an object
 * of all of them, and join or drop repeated ones.
 */
export function readHeaders(rawHeaders: readonly string[]): RequestHeaders {
  const headers = new RequestHeaders();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    const candidates = BY_LENGTH[name.length];
    if (candidates !== undefined && candidates.length > 0)
      knownAs(name, candidates)?.take(headers, rawHeaders[at + 1] ?? "");
  }
  return headers;
}

/** The one of `candidates` with this name, in any letter case; nearly always it is written in one of two. */
function knownAs(name: string, candidates: readonly KnownHeader[]): KnownHeader | undefined {
  for (const known of candidates) if (known.title === name || known.name === name) return known;
  const lowerCase = name.toLowerCase();
  return candidates.find((known) => known.name === lowerCase);
}
