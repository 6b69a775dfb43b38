import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { TOKEN_HASH, tokenOf } from "../../helpers/auth-files.js";
import { ChromiumPage, lacksChromium } from "../../helpers/chromium.js";
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
      const asked = await fetch(page, { method: "POST", body: "How many" });
      assert.equal(asked.status, 201);
      const name = await asked.text();
      const address = await (await fetch(`${page}address/${name}`)).text();
      assert.equal((await fetch(address)).status, 200);
      assert.equal((await fetch(address.replace(name, "inbox/made"))).status, 401);
      for (const other of ["inbox/made", "chat/made", `${name}/more`, "chat%2Fmade", `${name}?more`])
        assert.equal((await fetch(`${page}address/${other}`)).status, 404, other);
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
  const tokens = [{ id: "recipes", sha256: TOKEN_HASH, grants: [{ streams: ["**"], allow }] }];
  const ticketKeys = [{ id: "pages", secret: randomBytes(32).toString("base64url") }];
  writeFileSync(auth, JSON.stringify({ tokens, ticketKeys }), { mode: 0o600 });
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

test("the page of a reply shows and stops it with tickets, another for one that is over", { skip: lacksChromium }, async (context) => {
  const token = tokenOf("recipes");
  const dir = tempDir();
  const brief = readFileSync(fileOf("chat-reply.mjs"), "utf8").replace("close: true", "close: true, expiresIn: 2");
  writeFileSync(join(dir, "chat-reply.mjs"), brief);
  writeFileSync(join(dir, "chat-reply.html"), readFileSync(fileOf("chat-reply.html")));
  const env = { STREAMS: await serveWithAuth(context, token), PORT: "0", STREAMDIR_TOKEN: token };
  const program = startNode(context, [join(dir, "chat-reply.mjs")], { env });
  const browser = await ChromiumPage.open(context);
  const reply = "document.querySelector('#reply').textContent";
  await browser.goTo(await program.stdoutLine(/^http:/));
  await browser.until("document.readyState === 'complete' && document.forms.length === 1");
  await browser.evaluate("document.querySelector('form button').click()");
  await browser.until(`${reply}.includes(' 3 ')`);
  await browser.reload();
  // A connection that is cut comes back with the ticket that it had, which is refused by then.
  const tickets = "performance.getEntriesByType('resource').filter(({ name }) => name.includes('/address/')).length";
  await browser.until(`${tickets} >= 2`);
  const shown = String(await browser.evaluate(reply));
  await browser.until(`${reply}.length > ${shown.length + 10}`);
  const numbers = Array.from({ length: 1000 }, (_, index) => `${index + 1} `).join("");
  assert.ok(`How many? Let me count: ${numbers}`.startsWith(String(await browser.evaluate(reply))), "each piece once");
  await browser.evaluate("document.querySelector('#stop').click()");
  await program.stdoutLine(/^stopped/);
  await browser.until("document.querySelector('#stop').hidden");
});
