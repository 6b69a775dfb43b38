import assert from "node:assert/strict";
import { test } from "node:test";
import { loadNatsClient } from "../../../../src/storage/nats/client/nats-client.js";

test("the client of NATS is no dependency: without it one line says what to install", async () => {
  await assert.rejects(loadNatsClient(), {
    name: "ClusterUnusableError",
    message: "--storage nats:// needs the client of NATS: npm install @nats-io/transport-node",
  });
});
