// Reads content types, and what they mean for a stream.

/** The content type of a stream that is created without one (docs/api.md, Create a stream). */
export const DEFAULT_CONTENT_TYPE = "application/octet-stream";

const MAX_CONTENT_TYPE_LENGTH = 256;
const JSON_MEDIA_TYPE = "application/json";
/** JSON and XML by the endings of their names (RFC 6839), and JSON by line. */
const TEXTUAL = /\+(?:json|xml)$|^application\/(?:x-ndjson|jsonl|xml)$/;

/** The parameter of text whose bytes are not UTF-8. */
const OTHER_CHARSET = /;\s*charset=(?!"?(?:utf-?8|us-ascii|ascii)"?\s*(?:;|$))/i;

const SPACE = 0x20;
const QUOTE = 0x22;
const SLASH = 0x2f;
const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const BACKSLASH = 0x5c;

/** The media type of a `Content-Type` value: lower case, trimmed, without parameters. */
export function mediaTypeOf(contentType: string): string {
  const semicolon = contentType.indexOf(";");
  return (semicolon === -1 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
}

/** Whether two `Content-Type` values have one media type; letter case and parameters make no difference. */
export function sameMediaType(a: string, b: string): boolean {
  return a === b || mediaTypeOf(a) === mediaTypeOf(b);
}

/** Whether the media type is exactly `application/json`; its streams hold messages, not bytes. */
export function isJsonContentType(text: string): boolean {
  return text === JSON_MEDIA_TYPE || mediaTypeOf(text) === JSON_MEDIA_TYPE;
}

/** What a stream's content type means for its appends. */
export interface StreamFormat {
  readonly contentType: string;
  /** Whether the stream holds messages, not bytes. */
  readonly isJson: boolean;
}

const MAX_SHARED_FORMATS = 256;
const SHARED_FORMATS = new Map<string, StreamFormat>();

/**
 * The format of streams of this content type, one for all of them: appends to thousands of streams find it in the
 * processor's cache, where one for each stream would have to be fetched.
 */
export function formatOf(contentType: string): StreamFormat {
  const shared = SHARED_FORMATS.get(contentType);
  if (shared !== undefined) return shared;
  const format = { contentType, isJson: isJsonContentType(contentType) };
  if (SHARED_FORMATS.size < MAX_SHARED_FORMATS) SHARED_FORMATS.set(contentType, format);
  return format;
}

/** How SSE data events carry bytes (docs/api.md, Follow). */
export type SseEncoding = "json" | "text" | "base64";

/** How they carry a stream of this content type: they are UTF-8 themselves. */
export function sseEncodingOf(contentType: string): SseEncoding {
  const mediaType = mediaTypeOf(contentType);
  if (mediaType === JSON_MEDIA_TYPE) return "json";
  return mediaType.startsWith("text/") && !OTHER_CHARSET.test(contentType) ? "text" : "base64";
}

/** Whether what a stream of this content type holds is text, JSON among it, which compresses well. */
export function isTextual(contentType: string): boolean {
  const mediaType = mediaTypeOf(contentType);
  return mediaType.startsWith("text/") || mediaType === JSON_MEDIA_TYPE || TEXTUAL.test(mediaType);
}

/**
 * Whether `text` is a media type with optional parameters (RFC 9110, 8.3.1), at most 256 characters and none of them a
 * control character, so that it can be stored and sent back as it is.
 */
export function isValidContentType(text: string): boolean {
  if (text.length > MAX_CONTENT_TYPE_LENGTH) return false;
  const slash = endOfToken(text, 0);
  if (slash === 0 || text.charCodeAt(slash) !== SLASH) return false;
  const end = endOfToken(text, slash + 1);
  return end > slash + 1 && areParameters(text, end);
}

/** Whether the rest of `text` is `; name=value` any number of times; RFC 9110 lets a parameter be empty. */
function areParameters(text: string, start: number): boolean {
  let at = skipSpaces(text, start);
  while (at < text.length) {
    if (text.charCodeAt(at) !== SEMICOLON) return false;
    at = endOfParameter(text, skipSpaces(text, at + 1));
    if (at === -1) return false;
    at = skipSpaces(text, at);
  }
  return true;
}

/** Where the parameter at `start` ends; `start` itself if it is empty, -1 if it is malformed. */
function endOfParameter(text: string, start: number): number {
  const equals = endOfToken(text, start);
  if (equals === start) return start;
  if (text.charCodeAt(equals) !== EQUALS) return -1;
  if (text.charCodeAt(equals + 1) === QUOTE) return endOfQuoted(text, equals + 2);
  const end = endOfToken(text, equals + 1);
  return end > equals + 1 ? end : -1;
}

function endOfQuoted(text: string, start: number): number {
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (!isPrintable(code)) return -1;
    if (code === BACKSLASH && !isPrintable(text.charCodeAt(++at))) return -1;
  }
  return -1;
}

function endOfToken(text: string, start: number): number {
  let at = start;
  while (at < text.length && isTokenCharacter(text.charCodeAt(at))) at++;
  return at;
}

function skipSpaces(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) === SPACE) at++;
  return at;
}

/** Latin1 without control characters: what a header that is sent back can hold. False for the NaN past the end. */
function isPrintable(code: number): boolean {
  return (code >= SPACE && code <= 0x7e) || (code >= 0xa0 && code <= 0xff);
}

function isTokenCharacter(code: number): boolean {
  const lower = code | 0x20;
  if (lower >= 0x61 && lower <= 0x7a) return true;
  if (code >= 0x30 && code <= 0x39) return true;
  return code < 0x80 && "!#$%&'*+-.^_`|~".includes(String.fromCharCode(code));
}
