import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { TOKEN_HASH, tokenOf } from "../../helpers/auth-files.js";
import { servePage } from "../../helpers/page-examples.js";
import { startNode, type TestProcess } from "../../helpers/process.js";
import { tempDir } from "../../helpers/temp-dir.js";

const RECIPES = new URL("../../../docs/recipes/", import.meta.url);
const SECRET = "a secret";

/** Starts a recipe, or a script that uses one, with a token or without. */
type Run = (args: readonly string[]) => TestProcess;

function fileOf(recipe: string): string {
  return fileURLToPath(new URL(recipe, RECIPES));
}

const REPLAY = `
  import { StreamdirEventStore } from ${JSON.stringify(new URL("mcp-event-store.mjs", RECIPES).href)};
  const store = new StreamdirEventStore(process.env.STREAMS + "mcp/1/");
  const first = await store.storeEvent("a", {});
  await store.storeEvent("a", { id: 1 });
  await store.replayEventsAfter(first, { send: async (_id, message) => console.log(JSON.stringify(message)) });`;

/** What each recipe does on a server, and rejects or ends otherwise if it may not. */
const CASES: readonly { readonly recipe: string; readonly use: (run: Run) => Promise<void> }[] = [
  {
    recipe: "chat-reply.mjs",
    async use(run) {
      const page = await run([fileOf("chat-reply.mjs")]).stdoutLine(/^http:/);
      assert.equal((await fetch(page, { method: "POST", body: "How many" })).status, 201);
    },
  },
  {
    recipe: "mcp-event-store.mjs",
    async use(run) {
      assert.equal(await run(["--input-type=module", "--eval", REPLAY]).stdoutLine(/./), '{"id":1}');
    },
  },
  {
    recipe: "webhook-inbox.mjs",
    async use(run) {
      const inbox = await run([fileOf("webhook-inbox.mjs")]).stdoutLine(/^http:/);
      const signature = `sha256=${createHmac("sha256", SECRET).update("1").digest("hex")}`;
      const headers = { "X-GitHub-Delivery": "d-1", "X-Hub-Signature-256": signature };
      assert.equal((await fetch(`${inbox}github`, { method: "POST", headers, body: "1" })).status, 202);
    },
  },
  {
    recipe: "webhook-worker.mjs",
    async use(run) {
      const worker = run([fileOf("webhook-worker.mjs"), "made"]);
      const refused = worker.stderrLine(/^4/).then((line) => assert.fail(line));
      assert.equal(await Promise.race([worker.stdoutLine(/^d-/), refused]), "d-0 0");
    },
  },
];

/** A server that lets in whoever has the token, and a stream of its own on it. */
async function serveWithAuth(context: TestContext, token: string): Promise<string> {
  const auth = join(tempDir(), "auth.json");
  const allow = ["create", "append", "read", "close"];
  writeFileSync(auth, JSON.stringify({ tokens: [{ id: "recipes", sha256: TOKEN_HASH, grants: [{ streams: ["**"], allow }] }] }), {
    mode: 0o600,
  });
  const streams = await servePage(context, { auth });
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const made = await fetch(`${streams}inbox/made`, { method: "PUT", headers, body: '{"id":"d-0","payload":0}' });
  assert.equal(made.status, 201);
  return streams;
}

for (const { recipe, use } of CASES) {
  test(`${recipe} uses a server with --auth by its token, and not without`, async (context) => {
    const token = tokenOf("recipes");
    const env = { STREAMS: await serveWithAuth(context, token), PORT: "0", WEBHOOK_SECRET: SECRET };
    const runWith =
      (more: Readonly<Record<string, string>>): Run =>
      (args) =>
        startNode(context, args, { cwd: tempDir(), env: { ...env, ...more } });
    await assert.rejects(use(runWith({})));
    await use(runWith({ STREAMDIR_TOKEN: token }));
  });
}
