import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import type { TestScope } from "./process.js";

/** The origin of a server that answers as `listener` does, and is gone when the test is over. */
export async function serverAt(scope: TestScope, listener: http.RequestListener): Promise<string> {
  const server = http.createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  scope.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const place = server.address();
  assert.ok(typeof place === "object" && place !== null);
  return `http://127.0.0.1:${place.port}`;
}
