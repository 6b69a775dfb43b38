// A chat reply that survives a reload, with a Stop button: node chat-reply.mjs, and open the address that it prints.
// Needs Node 20 and a streamdir at STREAMS. The page reads the reply from there, not from this program.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import http from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const STREAMS = process.env.STREAMS ?? "http://127.0.0.1:4437/v1/stream/";
/** A token for a server with --auth; without, there is none. A page must not have it: it gets tickets (docs/auth.md). */
const TOKEN = process.env.STREAMDIR_TOKEN ?? "";
const AUTH = TOKEN === "" ? {} : { Authorization: `Bearer ${TOKEN}` };
const DAY_SECONDS = 24 * 3600;
const TRIES = 60;
/** Answers below 500 that pass: the request came too slowly, or too many came (--rate-limit). Nothing was done. */
const PASSING = [408, 429];

/** In the place of your model: gives a reply piece by piece. */
async function* replyTo(question) {
  yield `${question}? Let me count: `;
  for (let number = 1; number <= 1000; number++) {
    await sleep(50);
    yield `${number} `;
  }
}

/** Sends until the server takes it; false when somebody has closed the stream. */
async function post(url, headers, body) {
  for (let tries = 1; ; tries++) {
    // No answer: it may be done or not, and the retry finds out.
    const answer = await fetch(url, { method: "POST", headers: { ...AUTH, ...headers }, body }).catch(() => null);
    if (answer?.ok) return true;
    if (answer?.status === 409 && answer.headers.has("Stream-Closed")) return false;
    const mayPass = answer === null || answer.status >= 500 || PASSING.includes(answer.status);
    if (!mayPass || tries === TRIES)
      throw new Error(`${url} was not written: ${(await answer?.text()) ?? "no answer"}`);
    await sleep(1000 * Number(answer?.headers.get("Retry-After") ?? 1));
  }
}

/** Stores a piece once, however often it has to be sent. */
function append(url, seq, piece) {
  const producer = { "Producer-Id": "model", "Producer-Epoch": "0", "Producer-Seq": String(seq) };
  return post(url, { "Content-Type": "text/plain", ...producer }, piece);
}

/** Writes a reply as it comes, until it is whole, was stopped, or the model failed. */
async function write(url, pieces) {
  let seq = 0;
  try {
    for await (const piece of pieces) {
      // Models give empty pieces, too, and an append needs a body.
      if (piece === "") continue;
      // Leaving the loop ends the generator: a model that is called there is told to stop.
      if (!(await append(url, seq, piece))) return console.log(`stopped after ${seq} pieces`);
      seq++;
    }
  } finally {
    // In any case, or its readers wait for ever. Closing what is closed does nothing: this may be sent again, too.
    await post(url, { "Stream-Closed": "true" });
  }
  console.log(`wrote ${seq} pieces`);
}

async function ask(req, res) {
  const name = `chat/${randomUUID()}`;
  const url = STREAMS + name;
  const created = await fetch(url, {
    method: "PUT",
    headers: { ...AUTH, "Content-Type": "text/plain", "Stream-TTL": String(DAY_SECONDS) },
  });
  if (!created.ok) throw new Error(`the stream was not created: ${await created.text()}`);
  write(url, replyTo(await text(req))).catch((fault) => console.error(fault));
  res.writeHead(201, { "Content-Type": "text/plain" }).end(name);
}

/** Where a reply is, and for a server with --auth a ticket to read and to stop it, for an hour. */
async function address(name, res) {
  // Your application asks here who it is. A name of another kind gets nothing: the token may read more than replies.
  if (!/^chat\/[0-9a-f-]{36}$/.test(name)) return res.writeHead(404).end();
  res.setHeader("Cache-Control", "no-store");
  if (TOKEN === "") return res.end(`${STREAMS}${name}?`);
  const body = JSON.stringify({ stream: name, close: true });
  const headers = { ...AUTH, "Content-Type": "application/json" };
  const answer = await fetch(`${STREAMS}__ds/tickets`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(`there is no ticket: ${await answer.text()}`);
  res.end(`${STREAMS}${name}?ticket=${(await answer.json()).ticket}`);
}

async function page(res) {
  const html = await readFile(new URL("chat-reply.html", import.meta.url));
  res.writeHead(200, { "Content-Type": "text/html" }).end(html);
}

function handle(req, res) {
  if (req.method === "POST") return ask(req, res);
  const [, name] = req.url.split("/address/");
  return name === undefined ? page(res) : address(name, res);
}

const server = http.createServer((req, res) => {
  const answering = handle(req, res);
  answering.catch((fault) => {
    console.error(fault);
    res.writeHead(502).end();
  });
});
server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () =>
  console.log(`http://127.0.0.1:${server.address().port}/`),
);
