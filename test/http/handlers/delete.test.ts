import assert from "node:assert/strict";
import { test } from "node:test";
import { startServer } from "../../helpers/test-server.js";

test("DELETE removes a stream for everybody", async (context) => {
  const server = await startServer(context);
  await server.send("PUT", "a", { body: "x" });
  const { status, headers, body } = await server.send("DELETE", "a");
  assert.equal(status, 204);
  assert.equal(headers["content-type"], undefined);
  assert.equal(body.length, 0);
  for (const method of ["GET", "HEAD", "DELETE"]) assert.equal((await server.send(method, "a")).status, 404, method);
});

test("DELETE of a stream that is not there is 404", async (context) => {
  const server = await startServer(context);
  const answer = await server.send("DELETE", "a");
  assert.equal(answer.status, 404);
  assert.equal(JSON.parse(answer.text).code, "stream-not-found");
});
