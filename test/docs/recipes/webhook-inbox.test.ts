import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { servePage } from "../../helpers/page-examples.js";
import { passingProxy } from "../../helpers/passing-proxy.js";
import { startNode, type TestProcess } from "../../helpers/process.js";
import { tempDir } from "../../helpers/temp-dir.js";

const SECRET = "a secret";
const [INBOX, WORKER] = ["webhook-inbox.mjs", "webhook-worker.mjs"].map((name) =>
  fileURLToPath(new URL(`../../../docs/recipes/${name}`, import.meta.url)),
) as [string, string]; // two names, two paths

function startProgram(context: TestContext, streams: string): TestProcess {
  return startNode(context, [INBOX], { env: { STREAMS: streams, PORT: "0", WEBHOOK_SECRET: SECRET } });
}

function startInbox(context: TestContext, streams: string): Promise<string> {
  return startProgram(context, streams).stdoutLine(/^http:/);
}

/** Sends a delivery; the status of its answer. */
async function deliver(inbox: string, id: string, body: string | Buffer, secret = SECRET, cut = 0): Promise<number> {
  const signed = createHmac("sha256", secret).update(body).digest("hex");
  const signature = `sha256=${signed.slice(cut)}${"\u00e9".repeat(cut)}`;
  const headers = { "X-GitHub-Delivery": id, "X-Hub-Signature-256": signature, "Content-Type": "application/json" };
  return (await fetch(`${inbox}github`, { method: "POST", headers, body })).status;
}

test("a delivery is stored as it came, and once however often it is sent", async (context) => {
  const streams = await servePage(context);
  const inbox = await startInbox(context, streams);
  assert.equal(await deliver(inbox, "d-1", '{"big":12345678901234567890}'), 202);
  assert.equal(await deliver(inbox, "d-2", '"two"'), 202);
  assert.equal(await deliver(inbox, "d-1", '{"big":12345678901234567890}'), 202);
  const text = await (await fetch(`${streams}inbox/github`)).text();
  assert.match(text, /"payload":\{"big":12345678901234567890\}/);
  const ids = (JSON.parse(text) as { id: string }[]).map(({ id }) => id); // as the program writes it
  assert.deepEqual(ids, ["d-1", "d-2"]);
});

test("what is not signed, not JSON or not named is refused, and nothing of it is stored", async (context) => {
  const streams = await servePage(context);
  const inbox = await startInbox(context, streams);
  assert.equal(await deliver(inbox, "d-1", "{}", "another secret"), 401);
  assert.equal(await deliver(inbox, "d-2", "{"), 400);
  // Nothing that ends the message early makes a second one of it.
  assert.equal(await deliver(inbox, "d-3", '1},{"id":"forged"'), 400);
  assert.equal((await fetch(`${inbox}a/b`, { method: "POST" })).status, 404);
  assert.equal((await fetch(`${streams}inbox/github`)).status, 404);
});

test("what is as long as a signature and no ASCII, or not UTF-8, is refused", async (context) => {
  const streams = await servePage(context);
  const inbox = await startInbox(context, streams);
  assert.equal(await deliver(inbox, "d-1", "{}", SECRET, 1), 401);
  assert.equal(await deliver(inbox, "d-2", Buffer.from('"\u00e9"', "latin1")), 400);
  assert.equal((await fetch(`${streams}inbox/github`)).status, 404);
});

test("a body is read up to a bound, and the rest of it is not awaited", { timeout: 120_000 }, async (context) => {
  const inbox = await startInbox(context, "http://127.0.0.1:9/");
  const sending = request(`${inbox}github`, { method: "POST" });
  const answered = once(sending, "response") as Promise<[IncomingMessage]>; // as http has it
  const isOver = once(sending, "close");
  // Its body has no end.
  sending.write(Buffer.alloc(25 * 1024 * 1024 + 1));
  const [answer] = await answered;
  assert.deepEqual([answer.statusCode, answer.headers.connection], [413, "close"]);
  // The other side ends the connection.
  answer.resume();
  await isOver;
});

test("a delivery that streamdir will never take is refused for good, with a line in the log", async (context) => {
  const program = startProgram(context, await servePage(context, { maxAppendBytes: 5000 }));
  const inbox = await program.stdoutLine(/^http:/);
  const cases = [
    { id: "d-1", body: `"${"a".repeat(5000)}"`, status: 413 },
    { id: "d-2", body: "[".repeat(2000) + "]".repeat(2000), status: 400 },
    { id: "d".repeat(257), body: "{}", status: 400 },
  ];
  for (const { id, body, status } of cases) {
    assert.equal(await deliver(inbox, id, body), status);
    await program.stderrLine(new RegExp(`^github: delivery ${id} was not stored: ${status} .*"code"`));
  }
  assert.equal(await deliver(inbox, "d-4", "{}"), 202);
});

test("a delivery that a closed inbox refuses is to come again, with a line in the log", async (context) => {
  const streams = await servePage(context);
  await fetch(`${streams}inbox/github`, { method: "PUT", headers: { "Content-Type": "application/json", "Stream-Closed": "true" } });
  const program = startProgram(context, streams);
  assert.equal(await deliver(await program.stdoutLine(/^http:/), "d-1", "{}"), 503);
  await program.stderrLine(/^github: delivery d-1 was not stored: 409 .*"stream-closed"/);
});

test("while the streams are not there a sender is told to come again", async (context) => {
  const inbox = await startInbox(context, "http://127.0.0.1:9/");
  assert.equal(await deliver(inbox, "d-1", "{}"), 503);
});

/** An inbox, and how its worker is started, of which one was killed when it had done two deliveries. */
async function workedOnce(context: TestContext): Promise<{ streams: string; inbox: string; work: () => TestProcess }> {
  const streams = await servePage(context);
  const inbox = await startInbox(context, streams);
  const cwd = tempDir();
  const work = (): TestProcess => startNode(context, [WORKER, "github"], { cwd, env: { STREAMS: streams } });
  await deliver(inbox, "d-1", "1");
  const first = work();
  assert.equal(await first.stdoutLine(/^d-/), "d-1 1");
  await deliver(inbox, "d-2", "2");
  await first.stdoutLine(/^d-2/);
  // It has kept the offset of the first before it asks for more.
  first.kill("SIGKILL");
  await first.ended;
  return { streams, inbox, work };
}

test("the worker goes on where it was when it is started again", async (context) => {
  const { inbox, work } = await workedOnce(context);
  await deliver(inbox, "d-3", "3");
  const second = work();
  await second.stdoutLine(/^d-3/);
  second.kill("SIGKILL");
  assert.doesNotMatch((await second.ended).stdout, /^d-1/m);
});

test("the worker says that deliveries are gone, and goes on with those that are there", async (context) => {
  const { streams, inbox, work } = await workedOnce(context);
  assert.equal((await fetch(`${streams}inbox/github`, { method: "DELETE" })).status, 204);
  assert.equal(await deliver(inbox, "d-3", "3"), 202);
  const second = work();
  assert.match(await second.stderrLine(/./), /^what came before \d{16}_\d{16} is gone: going on there$/);
  assert.equal(await second.stdoutLine(/^d-/), "d-3 3");
  // It goes on from there when it is started again.
  await deliver(inbox, "d-4", "4");
  await second.stdoutLine(/^d-4/);
  second.kill("SIGKILL");
  await second.ended;
  await deliver(inbox, "d-5", "5");
  const third = work();
  await third.stdoutLine(/^d-5/);
  third.kill("SIGKILL");
  assert.equal((await third.ended).stderr, "");
});

test("the worker goes on where an answer broke off in its middle", async (context) => {
  const streams = await servePage(context);
  await deliver(await startInbox(context, streams), "d-1", "1");
  let answers = 0;
  const origin = await passingProxy(context, streams, (_req, res) => {
    if (++answers > 1) return false;
    res.writeHead(200, { "Content-Type": "application/json" }).write('[{"id":', () => res.destroy());
    return true;
  });
  const env = { STREAMS: origin + new URL(streams).pathname };
  const worker = startNode(context, [WORKER, "github"], { cwd: tempDir(), env });
  assert.equal(await worker.stdoutLine(/^d-/), "d-1 1");
  assert.match(worker.stderrText(), /^no whole answer; again in a second$/m);
});
