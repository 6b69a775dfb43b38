import { once } from "node:events";
import { connect as connectPlain } from "node:net";
import type { TestContext } from "node:test";
import { connect } from "node:tls";
import { DirectConnection } from "../../src/http/node/direct-connection.js";
import { transport } from "./raw-connection.js";
import { testAuthority, tlsOptions } from "./secure-server.js";

/** The ways of a request through the server: straight to its socket, through Node's own answer, and the first over TLS. */
export type RequestPath = "direct" | "ordinary" | "TLS";

/** The two that are the server's own affair. */
export const REQUEST_PATHS: readonly RequestPath[] = ["direct", "ordinary"];

/** All, for tests of what comes over a connection, and of its ends. */
export const ALL_PATHS: readonly RequestPath[] = [...REQUEST_PATHS, "TLS"];

/**
 * Servers of this test take this path, or those of all tests until `mock` is restored: the ordinary one is all that is
 * left on a Node without the names that the direct one leans on.
 */
export function takePath({ mock }: Pick<TestContext, "mock">, path: RequestPath): void {
  if (path === "ordinary") mock.method(DirectConnection, "open", () => null);
  if (path !== "TLS") return;
  mock.method(transport, "options", tlsOptions);
  mock.method(transport, "connect", async (port: number, localAddress: string) => {
    const plain = connectPlain({ port, host: "127.0.0.1", localAddress, allowHalfOpen: true });
    const socket = connect({ socket: plain, ca: testAuthority().ca, ALPNProtocols: ["http/1.1"] });
    await once(socket, "secureConnect");
    return socket;
  });
}

/** Counts the answers that have gone straight to their sockets in this test. */
export function countDirectAnswers(context: TestContext): () => number {
  const { mock } = context.mock.method(DirectConnection.prototype, "answer");
  return () => mock.callCount();
}
