// A webhook inbox: what is posted to /NAME is on disk before the sender is told so, and stored once however often it is
// sent. WEBHOOK_SECRET=… node webhook-inbox.mjs; needs Node 20 and a streamdir at STREAMS.
import { isUtf8 } from "node:buffer";
import { createHmac, timingSafeEqual } from "node:crypto";
import http from "node:http";

const STREAMS = process.env.STREAMS ?? "http://127.0.0.1:4437/v1/stream/";
const SECRET = process.env.WEBHOOK_SECRET ?? "";
/** A token for a server with --auth; without, there is none. */
const AUTH = process.env.STREAMDIR_TOKEN ? { Authorization: `Bearer ${process.env.STREAMDIR_TOKEN}` } : {};
const HEADERS = { ...AUTH, "Content-Type": "application/json" };
/** What GitHub sends at most. Above its --max-append-bytes (16 MiB) streamdir refuses a delivery itself. */
const MAX_BODY_BYTES = 25 * 1024 * 1024;
/** Refusals for what is wrong with the delivery itself: sent again, it would be refused again. */
const FINAL = [400, 413, 431];

/** The body; `null` when it is too long: whoever has not signed yet is not given more memory. */
async function bodyOf(req) {
  const parts = [];
  let bytes = 0;
  // The connection is still needed for the answer.
  for await (const part of req.iterator({ destroyOnReturn: false })) {
    bytes += part.length;
    if (bytes > MAX_BODY_BYTES) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Whether the body is signed with the secret, as GitHub does it; other senders have other headers for the same. */
function isSigned(body, signature = "") {
  const expected = Buffer.from(`sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`);
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** Whether it can stand in the middle of a message without being more than a value. */
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Stores a delivery as one message; the answer to that. */
async function store(url, id, payload) {
  // The payload is passed on as it came: parsed and written anew, large numbers would change.
  const message = `[{"id":${JSON.stringify(id)},"receivedAt":"${new Date().toISOString()}","payload":${payload}}]`;
  // A delivery is a producer that has one append to make: its retry is told apart from a second delivery.
  const once = { "Producer-Id": id, "Producer-Epoch": "0", "Producer-Seq": "0" };
  const post = (headers) => fetch(url, { method: "POST", headers: { ...HEADERS, ...headers }, body: message });
  let answer = await post(once);
  if (answer.status === 404) {
    const created = await fetch(url, { method: "PUT", headers: HEADERS });
    if (!created.ok) return created;
    answer = await post(once);
  }
  // More than 4,096 deliveries within a day: from here on a retry may be stored twice, and the reader looks at the id.
  if (answer.status === 409 && (await answer.clone().json()).code === "too-many-producers") answer = await post({});
  return answer;
}

async function receive(req, res) {
  const name = /^\/([\w-]+)$/.exec(req.url)?.[1];
  if (req.method !== "POST" || name === undefined) return res.writeHead(404).end();
  const body = await bodyOf(req);
  if (body === null) return res.writeHead(413, { Connection: "close" }).end();
  if (!isSigned(body, req.headers["x-hub-signature-256"])) return res.writeHead(401).end();
  const id = req.headers["x-github-delivery"] ?? req.headers["webhook-id"];
  if (id === undefined) return res.writeHead(400).end("a delivery needs an id\n");
  const payload = body.toString("utf8");
  // Other bytes than UTF-8 would be stored changed.
  if (!isUtf8(body) || !isJson(payload)) return res.writeHead(400).end("a delivery is JSON in UTF-8\n");
  const answer = await store(`${STREAMS}inbox/${name}`, id, payload);
  // Only what is on disk is accepted.
  if (answer.ok) return res.writeHead(202).end();
  console.error(`${name}: delivery ${id} was not stored: ${answer.status} ${await answer.text()}`);
  // All else may go well later, if only when somebody has read this: the sender is to come again.
  res.writeHead(FINAL.includes(answer.status) ? answer.status : 503).end();
}

const server = http.createServer((req, res) => {
  receive(req, res).catch((fault) => {
    console.error(fault);
    if (!res.headersSent) res.writeHead(503);
    res.end();
  });
});
if (SECRET === "") throw new Error("WEBHOOK_SECRET is not set");
server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
