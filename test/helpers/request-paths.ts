import type { TestContext } from "node:test";
import { DirectConnection } from "../../src/http/node/direct-connection.js";

/** The two ways of a request through the server: straight to its socket, and through Node's own answer. */
export type RequestPath = "direct" | "ordinary";

/** Both, for tests that must hold on either. */
export const REQUEST_PATHS: readonly RequestPath[] = ["direct", "ordinary"];

/**
 * Servers of this test take this path, or those of all tests until `mock` is restored: the ordinary one is all that is
 * left on a Node without the names that the direct one leans on.
 */
export function takePath({ mock }: Pick<TestContext, "mock">, path: RequestPath): void {
  if (path === "ordinary") mock.method(DirectConnection, "open", () => null);
}

/** Counts the answers that have gone straight to their sockets in this test. */
export function countDirectAnswers(context: TestContext): () => number {
  const { mock } = context.mock.method(DirectConnection.prototype, "answer");
  return () => mock.callCount();
}
