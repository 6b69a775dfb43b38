/** How many characters base64url has for this many bytes. */
export function base64UrlLength(bytes: number): number {
  return Math.ceil((bytes * 4) / 3);
}

/**
 * The bytes that `text` is the one base64url spelling of (RFC 4648, section 5, without padding); `null` for other
 * characters, padding, or bits that no byte has: two texts never stand for the same bytes.
 */
export function decodeBase64Url(text: string): Buffer | null {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : null;
}
