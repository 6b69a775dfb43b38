import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { describe, test } from "node:test";
import { hasSmallOrder } from "../../../src/auth/jwt/small-order.js";
import { keyOfJwk } from "../../../src/auth/jwt/verification-key.js";
import { parseJsonTree } from "../../../src/protocol/json/json-tree.js";
import { jwkOf, PAIRS } from "../../helpers/jwt.js";

const P = 2n ** 255n - 19n;
const D = mod(-121665n * inverse(121666n));

interface Point {
  readonly x: bigint;
  readonly y: bigint;
}

const NEUTRAL: Point = { x: 0n, y: 1n };

function mod(value: bigint): bigint {
  return ((value % P) + P) % P;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let square = mod(base), left = exponent; left > 0n; left >>= 1n, square = mod(square * square))
    if ((left & 1n) === 1n) result = mod(result * square);
  return result;
}

function inverse(value: bigint): bigint {
  return power(value, P - 2n);
}

function sum(a: Point, b: Point): Point {
  const product = D * a.x * b.x * a.y * b.y;
  return { x: mod((a.x * b.y + b.x * a.y) * inverse(1n + product)), y: mod((a.y * b.y + a.x * b.x) * inverse(1n - product)) };
}

/** The point on the curve that 32 bytes stand for, also where they are not the canonical ones; `null` for none. */
function pointOf(bytes: Buffer): Point | null {
  const encoded = BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`);
  const y = mod(encoded & (2n ** 255n - 1n));
  const square = mod((y * y - 1n) * inverse(D * y * y + 1n));
  const root = power(square, (P + 3n) / 8n);
  const x = [root, mod(root * power(2n, (P - 1n) / 4n))].find((candidate) => mod(candidate * candidate) === square);
  if (x === undefined) return null;
  return { x: (x & 1n) === encoded >> 255n ? x : mod(-x), y };
}

/** How often a point is added to itself until that is nothing; more than 8 is `null`. */
function orderOf(point: Point): number | null {
  let multiple = point;
  for (let order = 1; order <= 8; order += 1, multiple = sum(multiple, point))
    if (multiple.x === NEUTRAL.x && multiple.y === NEUTRAL.y) return order;
  return null;
}

function encodingOf(y: bigint, sign: bigint): Buffer {
  return Buffer.from((y + sign * 2n ** 255n).toString(16).padStart(64, "0"), "hex").reverse();
}

/** All points whose order divides 8: the multiples of one of order 8. */
function smallPoints(): Point[] {
  const generator = pointOf(Buffer.from("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", "hex"));
  assert.ok(generator !== null);
  assert.equal(orderOf(generator), 8);
  const points = [NEUTRAL];
  for (let point = generator; points.length < 8; point = sum(point, generator)) points.push(point);
  return points;
}

/** Every 32 bytes that stand for one of them: y itself or y + p where that fits in 255 bits, with either sign. */
const ENCODINGS = [...new Set(smallPoints().map(({ y }) => y))]
  .flatMap((y) => [y, y + P].filter((encoded) => encoded < 2n ** 255n))
  .flatMap((y) => [encodingOf(y, 0n), encodingOf(y, 1n)]);

function jwkOfBytes(bytes: Buffer): { kty: string; crv: string; x: string } {
  return { kty: "OKP", crv: "Ed25519", x: bytes.toString("base64url") };
}

function keyOf(jwk: unknown): ReturnType<typeof keyOfJwk> {
  const tree = parseJsonTree(JSON.stringify(jwk));
  assert.ok(tree.kind !== "fault");
  return keyOfJwk(tree);
}

/** R is the neutral element and S is 0: right for every message whose hash is a multiple of the key's order. */
const FORGED = Buffer.concat([encodingOf(NEUTRAL.y, 0n), Buffer.alloc(32)]);
const MESSAGES = Array.from({ length: 200 }, (_, at) => Buffer.from(`message ${at}`));

describe("a public key of Ed25519 of small order", () => {
  test("has one of 14 encodings", () => assert.equal(ENCODINGS.length, 14));

  for (const bytes of ENCODINGS)
    test(`${bytes.toString("hex")} is no key: its signatures can be forged without a private one`, () => {
      const point = pointOf(bytes);
      assert.ok(point !== null && orderOf(point) !== null, "it is of small order");
      const key = createPublicKey({ key: jwkOfBytes(bytes), format: "jwk" });
      assert.ok(
        MESSAGES.some((message) => verify(null, message, key, FORGED)),
        "the platform takes a forged signature",
      );
      assert.equal(hasSmallOrder(bytes), true);
      assert.equal(keyOf(jwkOfBytes(bytes)), null);
    });
});

describe("a public key of Ed25519 of another order", () => {
  const { x = "" } = PAIRS.EdDSA.publicKey.export({ format: "jwk" });
  const base = "5866666666666666666666666666666666666666666666666666666666666666";
  for (const [title, bytes] of [
    ["of an issuer", Buffer.from(x, "base64url")],
    ["the base point", Buffer.from(base, "hex")],
    ["2, which is beside the list by one", encodingOf(2n, 0n)],
    ["p - 2", encodingOf(P - 2n, 1n)],
  ] as const)
    test(`${title} is taken`, () => assert.equal(hasSmallOrder(bytes), false));
  test("verifies what it has signed", () => assert.ok(keyOf(jwkOf(PAIRS.EdDSA.publicKey)) !== null));
});
