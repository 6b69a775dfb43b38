import assert from "node:assert/strict";
import { checkOf, formatOffset, parseOffset } from "../../src/protocol/offset.js";

/** A server that can be asked for a stream. */
interface Asked {
  send(method: string, target: string): Promise<{ readonly headers: Readonly<Record<string, string | undefined>> }>;
}

/** The token of a byte of a part that the incarnation `id` wrote. */
export function tokenIn(id: string, byte: number, partStart = 0): string {
  return formatOffset(partStart, byte, checkOf(id));
}

/** What a token says without its check: `<part start>_<byte in part>` in plain decimals. */
export function placeOf(token: unknown): string {
  const parsed = parseOffset(String(token));
  assert.ok(parsed?.kind === "at", `${String(token)} is not the token of a place`);
  return `${parsed.partStart}_${parsed.byteInPart}`;
}

/** Writes tokens of a stream that a server has, for a test that asks for places nobody was told of. */
export async function tokensOf(server: Asked, name: string): Promise<(byte: number, partStart?: number) => string> {
  const { headers } = await server.send("GET", name);
  const id = /^"(\w+):/.exec(headers["etag"] ?? "")?.[1];
  assert.ok(id !== undefined, `${name} has no ETag`);
  return (byte, partStart) => tokenIn(id, byte, partStart);
}
