import { hostNameOf, isLoopbackName } from "../../net/host-name.js";

/** What a request's headers say, as far as the protocol reads them. `null` is an absent header. */
export class RequestHeaders {
  /** From `Host`, or from `:authority` where HTTP/2 has that instead; then from an absolute target, if it is one. */
  host: string | null = null;
  /** The `:authority` of a request of HTTP/2 that also has a `Host`: they must be the same (RFC 9113, 8.3.1). */
  authority: string | null = null;
  origin: string | null = null;
  /** The addresses that proxies asked for, each adding the one that asked it; several headers are one list. */
  forwardedFor: string | null = null;
  forwardedHost: string | null = null;
  forwardedProto: string | null = null;
  /** Whether a proxy says, in a header of any name for that, that it passes the request on. */
  isPassedOn = false;
  authorization: string | null = null;
  /** Whether there is an `Expect`. */
  expects = false;
  /** From `Content-Length`. */
  contentLength: number | null = null;
  /** The codings of a body whose length is unknown; several headers are one list. */
  transferEncoding: string | null = null;
  /** Whether there is an `Upgrade`. */
  upgrades = false;
  acceptEncoding: string | null = null;
  ifMatch: string | null = null;
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
  /** From `X-Request-Id` and `traceparent`, as they were sent. */
  requestId: string | null = null;
  traceparent: string | null = null;
  /** Whether a body of unknown length follows without a coding, as in HTTP/2. */
  isBodyOpen = false;
  /** The name of a header that may come once and came again. */
  repeated: string | null = null;

  /** Whether a body follows. */
  get hasBody(): boolean {
    if (this.contentLength !== null && this.transferEncoding === null) return this.contentLength > 0;
    return this.transferEncoding !== null || this.isBodyOpen;
  }

  /**
   * Whether the request seems to come from another machine: a proxy passes it on, or it asks for a host that is not
   * this machine. A client may pretend either; a proxy that hides both is taken for a client.
   */
  get seemsProxied(): boolean {
    return this.isPassedOn || (this.host !== null && !isLoopbackName(hostNameOf(this.host)));
  }
}

/** A header that the protocol reads. */
interface KnownHeader {
  /** In lower case, and as most clients write it that do not send lower case. */
  readonly name: string;
  readonly title: string;
  /** A bit of its own where the header may come once; 0 where it may be repeated. */
  readonly onceBit: number;
  readonly take: (headers: RequestHeaders, value: string) => void;
}

function header(name: string, take: KnownHeader["take"], onceBit = 0): KnownHeader {
  return { name, title: name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()), onceBit, take };
}

/** A header that proxies add to what they pass on. */
function added(name: string, take?: KnownHeader["take"]): KnownHeader {
  return header(name, (headers, value) => {
    headers.isPassedOn = true;
    take?.(headers, value);
  });
}

let nextBit = 1;

/** A header that may come once. */
function once(name: string, take: KnownHeader["take"]): KnownHeader {
  const bit = nextBit;
  nextBit <<= 1;
  return header(name, take, bit);
}

/** A list that came in several headers, in one. */
function listed(before: string | null, value: string): string {
  return before === null ? value : `${before}, ${value}`;
}

/** Each has functions of its own: looking a field up by its name costs more than everything else here. */
const KNOWN_HEADERS: readonly KnownHeader[] = [
  header(":authority", (headers, value) => void (headers.authority = value)),
  once("host", (headers, value) => void (headers.host = value)),
  header("origin", (headers, value) => void (headers.origin ??= value)),
  once("authorization", (headers, value) => void (headers.authorization = value)),
  header("expect", (headers) => void (headers.expects = true)),
  header("content-length", (headers, value) => void (headers.contentLength = Number(value))),
  header(
    "transfer-encoding",
    (headers, value) => void (headers.transferEncoding = listed(headers.transferEncoding, value)),
  ),
  header("upgrade", (headers) => void (headers.upgrades = true)),
  header("accept-encoding", (headers, value) => void (headers.acceptEncoding = listed(headers.acceptEncoding, value))),
  once("if-match", (headers, value) => void (headers.ifMatch = value)),
  header("if-none-match", (headers, value) => void (headers.ifNoneMatch = listed(headers.ifNoneMatch, value))),
  header("last-event-id", (headers, value) => void (headers.lastEventId ??= value)),
  added("x-forwarded-for", (headers, value) => void (headers.forwardedFor = listed(headers.forwardedFor, value))),
  added("x-forwarded-host", (headers, value) => void (headers.forwardedHost ??= value)),
  added("x-forwarded-proto", (headers, value) => void (headers.forwardedProto ??= value)),
  added("x-real-ip"),
  added("forwarded"),
  added("via"),
  once("content-type", (headers, value) => void (headers.contentType = value)),
  once("stream-ttl", (headers, value) => void (headers.streamTtl = value)),
  once("stream-expires-at", (headers, value) => void (headers.streamExpiresAt = value)),
  once("stream-closed", (headers, value) => void (headers.streamClosed = value)),
  once("stream-seq", (headers, value) => void (headers.streamSeq = value)),
  once("stream-forked-from", (headers, value) => void (headers.streamForkedFrom = value)),
  once("stream-fork-offset", (headers, value) => void (headers.streamForkOffset = value)),
  once("stream-fork-sub-offset", (headers, value) => void (headers.streamForkSubOffset = value)),
  once("producer-id", (headers, value) => void (headers.producerId = value)),
  once("producer-epoch", (headers, value) => void (headers.producerEpoch = value)),
  once("producer-seq", (headers, value) => void (headers.producerSeq = value)),
  header("x-request-id", (headers, value) => void (headers.requestId ??= value)),
  header("traceparent", (headers, value) => void (headers.traceparent ??= value)),
];

/** The known headers by the length of their names: that alone rules out most of a browser's. */
const BY_LENGTH: readonly (readonly KnownHeader[])[] = Array.from(
  { length: Math.max(...KNOWN_HEADERS.map(({ name }) => name.length)) + 1 },
  (_, length) => KNOWN_HEADERS.filter(({ name }) => name.length === length),
);

const SPACE = 0x20;
const TAB = 0x09;

/**
 * Reads `IncomingMessage.rawHeaders`, names and values in turn, in one pass. Node's own `headers` would build an object
 * of all of them, and join or drop repeated ones. `isBodyOpen`: a body follows, whatever the headers say.
 */
export function readHeaders(rawHeaders: readonly string[], isBodyOpen = false): RequestHeaders {
  const headers = new RequestHeaders();
  let seen = 0;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    const candidates = BY_LENGTH[name.length];
    if (candidates === undefined || candidates.length === 0) continue;
    const known = knownAs(name, candidates);
    if (known === undefined) continue;
    if ((seen & known.onceBit) !== 0) headers.repeated = known.name;
    seen |= known.onceBit;
    known.take(headers, withoutBlanks(rawHeaders[at + 1] ?? ""));
  }
  headers.isBodyOpen = isBodyOpen;
  headers.host ??= headers.authority;
  return headers;
}

/** Blanks around a value do not belong to it (RFC 9110, 5.5). Node takes them away over HTTP/1.1 alone. */
function withoutBlanks(value: string): string {
  let [from, to] = [0, value.length];
  while (isBlank(value.charCodeAt(from))) from += 1;
  while (to > from && isBlank(value.charCodeAt(to - 1))) to -= 1;
  return to - from === value.length ? value : value.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

/** The one of `candidates` with this name, in any letter case; nearly always it is written in one of two. */
function knownAs(name: string, candidates: readonly KnownHeader[]): KnownHeader | undefined {
  for (const known of candidates) if (known.title === name || known.name === name) return known;
  const lowerCase = name.toLowerCase();
  return candidates.find((known) => known.name === lowerCase);
}
