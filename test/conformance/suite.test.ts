import { runConformanceTests } from "@durable-streams/server-conformance-tests";
import { afterAll, beforeAll, test } from "vitest";
import { BuiltServer, LONG_POLL_TIMEOUT_MS } from "./built-server.js";

// The suite reads baseUrl when a test runs, so that it can be filled in once the server has its port.
const target = { baseUrl: "", longPollTimeoutMs: LONG_POLL_TIMEOUT_MS };
let server: BuiltServer | undefined;

beforeAll(async () => {
  server = await BuiltServer.start();
  target.baseUrl = server.origin;
});

afterAll(() => server?.stop().catch(() => undefined)); // the last test has told what is wrong with it

runConformanceTests(target);

test("the server ends with status 0 on SIGTERM", async () => {
  await server?.stop();
}, 30_000);
