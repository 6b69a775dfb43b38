// Names the points of Ed25519 that are no public keys, because signatures of them need no private key.

/**
 * The encodings of y, little-endian and without the sign of x, that the eight points have whose order divides 8: the
 * canonical ones, and those that are only equal to one modulo p = 2^255 - 19 (libsodium refuses the same).
 */
const SMALL_ORDER_Y: ReadonlySet<string> = new Set([
  `00${"00".repeat(31)}`, // 0: order 4
  `01${"00".repeat(31)}`, // 1: the neutral element
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", // order 8
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", // order 8
  `ec${"ff".repeat(30)}7f`, // p - 1: order 2
  `ed${"ff".repeat(30)}7f`, // p, for 0
  `ee${"ff".repeat(30)}7f`, // p + 1, for 1
]);

/** The last byte's highest bit is the sign of x. */
const SIGN_BIT = 0x80;

/** Whether the 32 bytes of a public key of Ed25519 (RFC 8032, 5.1.5) are a point of small order. */
export function hasSmallOrder(key: Buffer): boolean {
  const y = Buffer.from(key);
  y[y.length - 1] = (y.at(-1) ?? 0) & ~SIGN_BIT;
  return SMALL_ORDER_Y.has(y.toString("hex"));
}
