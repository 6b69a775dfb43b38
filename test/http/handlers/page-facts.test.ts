import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { packageVersion } from "../../../src/ops/version.js";
import type { ServerOptions } from "../../../src/server.js";
import { AuthFile } from "../../helpers/auth-file.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";

const ALL = ["read", "append", "create", "close", "delete", "list", "admin"];

async function factsOf(server: TestServer, query: string, token?: string, prefix = "/v1/stream/"): Promise<Record<string, unknown>> {
  // There is a page for this machine's own names.
  const headers = { Host: "localhost", ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }) };
  const { status, text, headers: own } = await server.send("GET", `${prefix}__ds/ui/facts${query}`, { headers });
  assert.equal(own["cache-control"], "no-store");
  return { status, ...JSON.parse(text) };
}

describe("what the page is told of the server", () => {
  test("is what it needs to know, and that everybody may do everything where nobody is asked", async (context) => {
    const server = await startServer(context);
    assert.deepEqual(await factsOf(server, ""), {
      status: 200,
      version: packageVersion(),
      prefix: "/v1/stream/",
      metrics: "../../../../metrics",
      maxAppendBytes: 16 * 1024 * 1024,
      readOnly: false,
      guarded: false,
      caller: null,
      allow: ALL,
    });
  });

  const ways: readonly (readonly [Partial<ServerOptions>, string, string | null])[] = [
    [{ prefix: "/a/" }, "/a/", "../../../metrics"],
    [{ prefix: "/" }, "/", null],
    [{ adminListen: "127.0.0.1:0" }, "/v1/stream/", null],
  ];
  for (const [options, prefix, metrics] of ways) {
    test(`has the way to the metrics from the page with ${JSON.stringify(options)}`, async (context) => {
      const server = await startServer(context, options);
      const { prefix: told, metrics: way } = await factsOf(server, "", undefined, prefix);
      assert.deepEqual([told, way], [prefix, metrics]);
    });
  }

  test("leaves out what a server that takes no changes refuses", async (context) => {
    const server = await startServer(context, { readOnly: true });
    assert.deepEqual((await factsOf(server, "?stream=a"))["allow"], ["read", "list", "admin"]);
  });

  test("is refused for what is no name", async (context) => {
    const server = await startServer(context);
    for (const query of ["?stream=", "?stream", "?stream=a//b", "?stream=%zz", "?stream=__ds/ui", "?stream=a&stream=b"])
      assert.deepEqual((await factsOf(server, query))["code"], "invalid-query", query);
  });
});

describe("what a caller may do", () => {
  const file = new AuthFile();
  const chat = file.token("chat", [{ streams: ["chat/**"], allow: ["read", "append", "list"] }]);
  const spaced = file.token("spaced", [{ streams: ["a b"], allow: ["read"] }]);
  const admin = file.token("admin", [{ streams: ["**"], allow: ["admin"] }]);
  file.grantPublic([{ streams: ["news/**"], allow: ["read"] }]);
  file.write();
  const cases: readonly (readonly [string, string, string | undefined, string | null, readonly string[]])[] = [
    ["on a stream of its grant", "?stream=chat%2F42", chat, "token chat", ["read", "append", "list"]],
    ["on a name with a space, as forms write it", "?stream=a+b", spaced, "token spaced", ["read"]],
    ["on a name with a space, as paths write it", "?stream=a%20b", spaced, "token spaced", ["read"]],
    ["on a stream of none, there or not", "?stream=jobs", chat, "token chat", []],
    ["anywhere", "", chat, "token chat", ["read", "append", "list"]],
    ["with the server", "", admin, "token admin", ["admin"]],
    ["without a credential, on what is public", "?stream=news/1", undefined, null, ["read"]],
    ["without a credential, on the rest", "?stream=jobs", undefined, null, []],
  ];
  for (const [title, query, token, caller, allow] of cases) {
    test(title, async (context) => {
      const server = await startServer(context, { auth: file.path });
      const facts = await factsOf(server, query, token);
      assert.deepEqual([facts["status"], facts["guarded"], facts["caller"], facts["allow"]], [200, true, caller, allow]);
    });
  }

  test("is nothing without a credential where nothing is public", async (context) => {
    const strict = new AuthFile();
    strict.write();
    const facts = await factsOf(await startServer(context, { auth: strict.path }), "");
    assert.deepEqual([facts["status"], facts["caller"], facts["allow"]], [200, null, []]);
  });

  test("is not told to a wrong credential", async (context) => {
    const server = await startServer(context, { auth: file.path });
    const { status, code } = await factsOf(server, "", "sd_no_such");
    assert.deepEqual([status, code], [401, "invalid-token"]);
  });
});
