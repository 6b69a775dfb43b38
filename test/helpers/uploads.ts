import { type TestContext } from "node:test";
import type { ServerOptions } from "../../src/server.js";
import { startServer, type TestServer } from "./test-server.js";

/** The headers of bytes, and of bytes in chunks. */
export const BYTES = { "Content-Type": "application/octet-stream" };
export const CHUNKED = { ...BYTES, "Transfer-Encoding": "chunked" };

/** A server with the stream `a`. */
export async function withStream(context: TestContext, options: Partial<ServerOptions> = {}): Promise<TestServer> {
  const server = await startServer(context, options);
  await server.send("PUT", "a");
  return server;
}

/** The code of a problem. */
export function codeOf(answer: { readonly text: string }): string {
  return JSON.parse(answer.text).code;
}

/** What the stream `a` holds. */
export async function contentOf(server: TestServer): Promise<string> {
  return (await server.send("GET", "a")).text;
}
