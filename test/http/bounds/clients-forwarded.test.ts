import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { REQUEST_PATHS, takePath } from "../../helpers/request-paths.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";

const FORWARDED = { "X-Forwarded-Proto": "https", "X-Forwarded-Host": "outer.example", "X-Forwarded-For": "192.0.2.7" };

async function locationFor(server: TestServer, name: string, from: string): Promise<string | undefined> {
  const { status, headers } = await server.send("PUT", name, { headers: { "Content-Type": "text/plain", ...FORWARDED }, from });
  assert.equal(status, 201);
  return headers["location"];
}

for (const path of REQUEST_PATHS) {
  describe(`X-Forwarded headers, ${path} path`, () => {
    test("are ignored unless a trusted proxy sends them", async (context) => {
      takePath(context, path);
      const untrusting = await startServer(context, { insecure: true });
      assert.equal(await locationFor(untrusting, "a", "127.0.0.1"), "http://streams.test/v1/stream/a");
      const trusting = await startServer(context, { insecure: true, trustProxy: "127.0.0.2" });
      assert.equal(await locationFor(trusting, "a", "127.0.0.1"), "http://streams.test/v1/stream/a");
      assert.equal(await locationFor(trusting, "b", "127.0.0.2"), "https://outer.example/v1/stream/b");
    });

    test("say who is counted behind a trusted proxy, and nobody else can choose that", async (context) => {
      takePath(context, path);
      const server = await startServer(context, { insecure: true, trustProxy: "127.0.0.2", rateLimit: "1" });
      const ask = async (client: string, from: string): Promise<number> =>
        (await server.send("HEAD", "none", { headers: { "X-Forwarded-For": client }, from })).status;
      for (const client of ["192.0.2.1", "192.0.2.2", "192.0.2.3"]) {
        assert.equal(await ask(client, "127.0.0.2"), 404);
        assert.equal(await ask(`198.51.100.1, ${client}`, "127.0.0.2"), 429, "what the client itself sent does not count");
      }
      assert.equal(await ask("192.0.2.4", "127.0.0.3"), 404);
      assert.equal(await ask("192.0.2.5", "127.0.0.3"), 429);
    });
  });
}
