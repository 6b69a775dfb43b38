import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { FLAG, frame, FRAME, requestHeaders, setting, uint32 } from "../helpers/frames.js";
import { requestBytes } from "../scale/load.js";
import { pause } from "../scale/server-under-load.js";

/** What a process that makes load over TLS is to do; it gets that as its only argument, and prints a {@link SecureReport}. */
export interface SecureOrder {
  readonly port: number;
  readonly over: "https" | "h2";
  /** How many appends are under way at a time. */
  readonly appends: number;
  /** How many follow the stream. */
  readonly readers: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** How it went. */
export interface SecureReport {
  readonly appendsPerSecond: number;
  readonly deliveriesPerSecond: number;
}

const PATH = "/v1/stream/s";
const TEXT = "text/plain";
/** In each message once, and in nothing else that is sent. */
const MARK = "~";
const BODY = MARK.padEnd(100, "x");
/** Streams of one connection, as a browser has them. */
const STREAMS = 100;
const APPENDS_A_CONNECTION = 16;
const END_OF_HEAD = "\r\n\r\n";
const MOST = 2 ** 31 - 1;
const FIRST_WINDOW = 65_535;

const counts = { appends: 0, deliveries: 0 };

function countMarks(chunk: Buffer): void {
  for (let at = chunk.indexOf(MARK); at !== -1; at = chunk.indexOf(MARK, at + 1)) counts.deliveries += 1;
}

async function open(port: number, protocol: string, take: (chunk: Buffer, socket: TLSSocket) => void): Promise<TLSSocket> {
  // The certificate is of this run alone.
  const socket = connect({ port, host: "127.0.0.1", ALPNProtocols: [protocol], rejectUnauthorized: false });
  socket.setNoDelay(true);
  await once(socket, "secureConnect");
  if (socket.alpnProtocol !== protocol) throw new Error(`the server speaks ${String(socket.alpnProtocol)}`);
  socket.on("data", (chunk: Buffer) => take(chunk, socket));
  socket.on("close", () => {
    throw new Error("the server closed a connection");
  });
  return socket;
}

/** Appends over one connection of HTTP/1.1, one after the other. */
async function appendByConnection(port: number): Promise<void> {
  const request = requestBytes("POST", PATH, { "Content-Type": TEXT }, BODY);
  const socket = await open(port, "http/1.1", (chunk) => {
    if (!chunk.includes(END_OF_HEAD)) return;
    if (chunk.toString("latin1", 9, 12) !== "204") throw new Error(chunk.toString());
    counts.appends += 1;
    socket.write(request);
  });
  socket.write(request);
}

async function followByConnection(port: number): Promise<void> {
  const socket = await open(port, "http/1.1", countMarks);
  socket.write(requestBytes("GET", `${PATH}?offset=now&live=sse`, { Accept: "text/event-stream" }));
}

/** A connection of HTTP/2 whose windows never close. */
async function openSession(port: number, take: (chunk: Buffer, socket: TLSSocket) => void): Promise<TLSSocket> {
  const socket = await open(port, "h2", take);
  const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  const settings = frame(FRAME.settings, 0, 0, setting(4, MOST));
  socket.write(
    Buffer.concat([preface, settings, frame(FRAME.window, 0, 0, uint32(MOST - FIRST_WINDOW)), frame(FRAME.settings, FLAG.ack, 0)]),
  );
  return socket;
}

/** Appends over one connection of HTTP/2, so many at a time. */
async function appendBySession(port: number, atOnce: number): Promise<void> {
  const head = requestHeaders("POST", PATH, [["content-type", TEXT]]);
  let id = 1;
  const next = (): Buffer => {
    const request = Buffer.concat([
      frame(FRAME.headers, FLAG.endHeaders, id, head),
      frame(FRAME.data, FLAG.endStream, id, Buffer.from(BODY)),
    ]);
    id += 2;
    return request;
  };
  let rest: Buffer = Buffer.alloc(0);
  const socket = await openSession(port, (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const requests: Buffer[] = [];
    while (rest.length >= 9) {
      const end = 9 + rest.readUIntBE(0, 3);
      if (rest.length < end) break;
      const [type, flags] = [rest.readUInt8(3), rest.readUInt8(4)];
      if (type === FRAME.reset || type === FRAME.goaway) throw new Error(`the server sent ${rest.toString("hex", 0, end)}`);
      if ((type === FRAME.headers || type === FRAME.data) && (flags & FLAG.endStream) !== 0) {
        counts.appends += 1;
        requests.push(next());
      }
      rest = rest.subarray(end);
    }
    if (requests.length > 0) socket.write(Buffer.concat(requests));
  });
  socket.write(Buffer.concat(Array.from({ length: atOnce }, next)));
}

async function followBySession(port: number, streams: number): Promise<void> {
  const socket = await openSession(port, countMarks);
  const head = requestHeaders("GET", `${PATH}?offset=now&live=sse`, [["accept", "text/event-stream"]]);
  const ids = Array.from({ length: streams }, (_, at) => 2 * at + 1);
  socket.write(Buffer.concat(ids.map((id) => frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, id, head))));
}

async function run({ port, over, appends, readers, warmUpMs, measureMs }: SecureOrder): Promise<SecureReport> {
  const isHttp2 = over === "h2";
  const creator = await open(port, "http/1.1", () => undefined).catch(() => null);
  creator?.write(requestBytes("PUT", PATH, { "Content-Type": TEXT }));
  const creation = isHttp2 && creator === null ? await createBySession(port) : creator;
  if (creation === null) throw new Error("nothing was created");
  await once(creation, "data");
  // It may be closed as idle.
  creation.removeAllListeners("close");
  const sizes = (all: number, each: number): number[] =>
    Array.from({ length: Math.ceil(all / each) }, (_, at) => Math.min(each, all - at * each));
  if (isHttp2) {
    await Promise.all(sizes(readers, STREAMS).map((streams) => followBySession(port, streams)));
    await pause(warmUpMs);
    await Promise.all(sizes(appends, APPENDS_A_CONNECTION).map((atOnce) => appendBySession(port, atOnce)));
  } else {
    for (let at = 0; at < readers; at += 1) await followByConnection(port);
    await pause(warmUpMs);
    await Promise.all(sizes(appends, 1).map(() => appendByConnection(port)));
  }
  await pause(warmUpMs);
  const before = { ...counts };
  const startedMs = performance.now();
  await pause(measureMs);
  const seconds = (performance.now() - startedMs) / 1000;
  return {
    appendsPerSecond: (counts.appends - before.appends) / seconds,
    deliveriesPerSecond: (counts.deliveries - before.deliveries) / seconds,
  };
}

/** Creates the stream over HTTP/2, where a server speaks nothing else. */
async function createBySession(port: number): Promise<TLSSocket> {
  const socket = await openSession(port, () => undefined);
  socket.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, requestHeaders("PUT", PATH, [["content-type", TEXT]])));
  return socket;
}

const [order] = process.argv.slice(2);
if (order !== undefined) {
  console.log(JSON.stringify(await run(JSON.parse(order) as SecureOrder)));
  process.exit(0);
}
