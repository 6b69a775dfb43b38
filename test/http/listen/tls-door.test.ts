import assert from "node:assert/strict";
import { once } from "node:events";
import { renameSync, writeFileSync } from "node:fs";
import { connect as connectPlain, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { TlsDoor, type TlsDoorOptions } from "../../../src/http/listen/tls-door.js";
import { startServer as start, StartError } from "../../../src/server.js";
import { REQUEST_LIMITS } from "../../../src/http/http-server.js";
import { makeAuthority, type Issued } from "../../helpers/certificates.js";
import { keptLog, type LogLine } from "../../helpers/engine.js";
import { ManualClock } from "../../helpers/manual-clock.js";
import { tempDir } from "../../helpers/temp-dir.js";

const authority = makeAuthority();

interface Opened {
  readonly door: TlsDoor;
  readonly log: readonly LogLine[];
  readonly port: number;
  replace(issued: Issued): void;
  /** A connection to it; resolves when its handshake is done. */
  connect(options?: ConnectionOptions): Promise<TLSSocket>;
}

/** A door behind a listener; each connection is told its protocol, and ended. */
async function open(
  context: TestContext,
  issued = authority.issue(),
  ca: string | null = null,
  { onSecure = (socket, protocol) => void socket.end(protocol), ...rest }: Partial<TlsDoorOptions> = {},
): Promise<Opened> {
  const dir = tempDir();
  const files = { cert: join(dir, "cert.pem"), key: join(dir, "key.pem"), clientCa: ca === null ? null : join(dir, "ca.pem") };
  const replace = ({ cert, key }: Issued): void => {
    for (const [path, text] of [
      [files.key, key],
      [files.cert, cert],
    ] as const) {
      writeFileSync(`${path}.new`, text);
      renameSync(`${path}.new`, path);
    }
  };
  replace(issued);
  if (files.clientCa !== null) writeFileSync(files.clientCa, ca ?? "");
  const { log, lines } = keptLog();
  const clock = new ManualClock();
  clock.advance(Date.now() - clock.nowMs());
  const door = await TlsDoor.open({ files, clock, log, onSecure, intervalMs: 20, ...rest });
  const listener = createServer({ allowHalfOpen: true }, (socket) => door.accept(socket)).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo; // it listens on a port
  const sockets: TLSSocket[] = [];
  context.after(() => {
    for (const socket of sockets) socket.destroy();
    door.close();
    listener.close();
  });
  const client = async (options: ConnectionOptions = {}): Promise<TLSSocket> => {
    const socket = connect({ port, host: "127.0.0.1", ca: authority.ca, ...options });
    sockets.push(socket);
    await once(socket, "secureConnect");
    return socket;
  };
  return { door, log: lines, port, replace, connect: client };
}

async function said(socket: TLSSocket): Promise<string> {
  let text = "";
  for await (const chunk of socket) text += String(chunk);
  return text;
}

function subjectOf(socket: TLSSocket): unknown {
  return socket.getPeerCertificate().subject.CN;
}

describe("a TLS door", () => {
  test("takes no second handshake: the certificate stays the one that was checked", async (context) => {
    const { connect: client } = await open(context, authority.issue(), authority.ca, {
      // An attempt may also break the connection.
      onSecure: (socket) => void socket.on("error", () => undefined).pipe(socket),
    });
    const socket = await client({ maxVersion: "TLSv1.2", ...authority.issue({ names: [], commonName: "alice", client: true }) });
    const second = await new Promise<string>((resolve) => {
      socket.on("error", () => resolve("refused"));
      socket.on("close", () => resolve("refused"));
      socket.renegotiate({}, (error) => resolve(error instanceof Error ? "refused" : "done"));
      // It is answered before what is sent after it.
      socket.once("data", () => resolve("refused")).write("first");
    });
    assert.equal(second, "refused");
  });

  test("prefers HTTP/2, and takes HTTP/1.1 from who speaks nothing else or says nothing", async (context) => {
    const { connect: client } = await open(context);
    assert.equal(await said(await client({ ALPNProtocols: ["http/1.1", "h2"] })), "h2");
    assert.equal(await said(await client({ ALPNProtocols: ["http/1.1"] })), "http/1.1");
    assert.equal(await said(await client()), "http/1.1");
  });

  test("ends a handshake that goes wrong, and says so at the level debug", async (context) => {
    const { connect: client, port, log } = await open(context);
    await assert.rejects(client({ ALPNProtocols: ["gopher"] }));
    await assert.rejects(client({ maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers: "ALL:@SECLEVEL=0" }));
    const plain = connectPlain(port, "127.0.0.1");
    plain.on("error", () => undefined).write("GET / HTTP/1.1\r\n\r\n");
    await new Promise((resolve) => plain.on("close", resolve).resume());
    assert.ok(log.length >= 3 && log.every(({ level }) => level === "debug"));
    assert.equal(await said(await client()), "http/1.1");
  });

  test("cuts a client that takes too long for its handshake", async (context) => {
    const { port, log } = await open(context, authority.issue(), null, { handshakeTimeoutMs: 20 });
    const silent = connectPlain(port, "127.0.0.1");
    await once(silent.resume(), "close");
    assert.deepEqual(
      log.map(({ message, fields }) => [message, fields["fault"]]),
      [["a TLS handshake failed", "TLS handshake timeout"]],
    );
  });

  test("serves a new certificate once its files have changed", async (context) => {
    const { connect: client, replace, log } = await open(context);
    replace(authority.issue({ commonName: "the new one" }));
    while (!log.some(({ level }) => level === "info")) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(subjectOf(await client()), "the new one");
  });

  test("keeps its certificate when the new files can't be used", async (context) => {
    const { connect: client, replace, door, log } = await open(context, authority.issue({ commonName: "the old one" }));
    replace({ cert: authority.issue().cert, key: authority.issue().key });
    assert.equal(await door.reload(), false);
    assert.ok(log.some(({ level }) => level === "error"));
    assert.equal(subjectOf(await client()), "the old one");
    replace(authority.issue({ commonName: "the new one" }));
    assert.equal(await door.reload(), true);
    assert.equal(subjectOf(await client()), "the new one");
  });

  test("warns of a certificate that ends soon", async (context) => {
    const until = new Date(Date.now() + 13 * 86_400_000);
    const { log } = await open(context, authority.issue({ until }));
    assert.deepEqual(
      log.map(({ level, message }) => [level, message]),
      [["warn", "the TLS certificate ends soon"]],
    );
  });

  test("resumes no session that began before the files were read again", async (context) => {
    const { connect: client, door } = await open(context, authority.issue(), makeAuthority().ca);
    const sessionOf = async (): Promise<Buffer> => {
      const socket = await client();
      const [session] = (await once(socket, "session")) as [Buffer]; // the event's argument
      return session;
    };
    const resumed = async (session: Buffer): Promise<boolean> => (await client({ session })).isSessionReused();
    const session = await sessionOf();
    assert.equal(await resumed(session), true);
    await door.reload();
    assert.equal(await resumed(session), false);
  });
});

test("a server whose certificate can't be used does not start, and its directory is free again", async () => {
  const dir = tempDir();
  const options = { dir, port: 0, logLevel: "silent", tlsCert: "/nowhere/cert.pem", tlsKey: "/nowhere/key.pem" } as const;
  await assert.rejects(start(options, REQUEST_LIMITS), (error) => error instanceof StartError && error.code === "invalid-option");
  const server = await start({ dir, port: 0, logLevel: "silent" }, REQUEST_LIMITS);
  assert.equal(await server.reload(), true);
  await server.close();
});
