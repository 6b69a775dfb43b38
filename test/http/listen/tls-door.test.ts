import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { renameSync, writeFileSync } from "node:fs";
import { connect as connectPlain, createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import type { TlsFailure } from "../../../src/metrics/connection-figures.js";
import { WatchedFile } from "../../../src/ops/watched-file.js";
import { TlsDoor, type TlsDoorOptions } from "../../../src/http/listen/tls-door.js";
import { startServer as start, StartError, type RunningServer, type ServerOptions } from "../../../src/server.js";
import { REQUEST_LIMITS } from "../../../src/http/http-server.js";
import { makeAuthority, type Issued } from "../../helpers/certificates.js";
import { runClient } from "../../helpers/client-verb.js";
import { keptLog, type LogLine } from "../../helpers/engine.js";
import { ManualClock } from "../../helpers/manual-clock.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { WatchedClock } from "../../helpers/test-server.js";
import { Barrier } from "../../helpers/watched-files.js";

const DAY_MS = 86_400_000;
const LONG_AGO = new Date(Date.now() - 100 * DAY_MS);

const authority = makeAuthority();

interface Opened {
  readonly door: TlsDoor;
  readonly clock: ManualClock;
  readonly log: readonly LogLine[];
  /** Why connections became none of TLS. */
  readonly failures: readonly TlsFailure[];
  readonly port: number;
  /** Where its CA is, if it asks clients. */
  readonly caFile: string;
  replace(issued: Issued): void;
  /** A connection to it; resolves when its handshake is done. */
  connect(options?: ConnectionOptions): Promise<TLSSocket>;
}

/** A door behind a listener; each connection is told its protocol, and ended. */
async function open(
  context: TestContext,
  issued = authority.issue(),
  ca: string | null = null,
  { onSecure = (socket, protocol) => void socket.end(protocol), plainAnswer = "use TLS", ...rest }: Partial<TlsDoorOptions> = {},
): Promise<Opened> {
  const dir = tempDir();
  const files = { cert: join(dir, "cert.pem"), key: join(dir, "key.pem"), clientCa: ca === null ? null : join(dir, "ca.pem") };
  const replace = ({ cert, key }: Issued): void => {
    for (const [path, text] of [
      [files.key, key],
      [files.cert, cert],
    ] as const) {
      writeFileSync(`${path}.new`, text, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    }
  };
  replace(issued);
  if (files.clientCa !== null) writeFileSync(files.clientCa, ca ?? "");
  const { log, lines } = keptLog();
  const clock = new ManualClock();
  clock.advance(Date.now() - clock.nowMs());
  const failures: TlsFailure[] = [];
  const onFailure = (reason: TlsFailure): void => void failures.push(reason);
  const door = await TlsDoor.open({ files, clock, log, onSecure, onFailure, plainAnswer, intervalMs: 20, ...rest });
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
  return { door, clock, log: lines, failures, port, caFile: join(dir, "ca.pem"), replace, connect: client };
}

async function said(socket: Socket): Promise<string> {
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
    const { connect: client, port, log, failures } = await open(context);
    await assert.rejects(client({ ALPNProtocols: ["gopher"] }));
    await assert.rejects(client({ maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers: "ALL:@SECLEVEL=0" }));
    const strange = connectPlain(port, "127.0.0.1");
    strange.on("error", () => undefined).write("\u0000neither one nor the other\r\n\r\n");
    assert.equal(await said(strange), "");
    assert.ok(log.length >= 3 && log.every(({ level }) => level === "debug"));
    assert.equal(await said(await client()), "http/1.1");
    assert.deepEqual(failures, Array(3).fill("handshake"));
  });

  for (const method of ["GET", "HEAD", "POST", "PUT"])
    test(`says the last word to a client that sends ${method} without TLS, and serves others on`, async (context) => {
      const { connect: client, port, log, failures } = await open(context);
      const plain = connectPlain(port, "127.0.0.1");
      plain.write(`${method} / HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      assert.equal(await said(plain), "use TLS");
      assert.deepEqual(
        log.map(({ level }) => level),
        ["debug"],
      );
      assert.deepEqual(failures, ["plain"]);
      assert.equal(await said(await client()), "http/1.1");
    });

  for (const [how, leave] of [
    ["ends its side", (socket: Socket) => void socket.end()],
    ["resets its connection", (socket: Socket) => void socket.resetAndDestroy()],
  ] as const)
    test(`counts a client that ${how} in its handshake at once, and tells whose it was`, async (context) => {
      const failed = new Barrier();
      const { port, log } = await open(context, authority.issue(), null, { onFailure: (reason) => reason === "left" && failed.open() });
      const half = connectPlain(port, "127.0.0.1").on("error", () => undefined);
      half.write(Buffer.from("1603010100010000", "hex"), () => leave(half));
      await failed.opened;
      assert.deepEqual(
        log.map(({ message, fields }) => [message, fields["client"]]),
        [["a TLS handshake failed", "127.0.0.1"]],
      );
    });

  test("cuts a client that takes too long for its handshake", async (context) => {
    const { port, log, failures } = await open(context, authority.issue(), null, { handshakeTimeoutMs: 20 });
    const silent = connectPlain(port, "127.0.0.1");
    await once(silent.resume(), "close");
    assert.deepEqual(
      log.map(({ message, fields }) => [message, fields["fault"]]),
      [["a TLS handshake failed", "TLS handshake timeout"]],
    );
    assert.deepEqual(failures, ["left"]);
  });

  test("serves a new certificate once its files have changed", async (context) => {
    const { connect: client, replace, log } = await open(context);
    replace(authority.issue({ commonName: "the new one" }));
    while (!log.some(({ level }) => level === "info")) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(subjectOf(await client()), "the new one");
  });

  test("keeps its certificate when the new files can't be used", async (context) => {
    const read: boolean[] = [];
    const {
      connect: client,
      replace,
      door,
      log,
    } = await open(context, authority.issue({ commonName: "the old one" }), null, {
      onRead: (isCurrent) => read.push(isCurrent),
      intervalMs: 3_600_000,
    });
    replace({ cert: authority.issue().cert, key: authority.issue().key });
    assert.equal(await door.reload(), false);
    assert.ok(log.some(({ level }) => level === "error"));
    assert.equal(subjectOf(await client()), "the old one");
    replace(authority.issue({ commonName: "the new one" }));
    assert.equal(await door.reload(), true);
    assert.equal(subjectOf(await client()), "the new one");
    assert.deepEqual(read, [true, false, true]);
  });

  /** Another CA in place of the one in `path`, and the trust in it. */
  function anotherAuthority() {
    const { ca } = makeAuthority();
    const [{ fingerprint256 }, trusted] = [new X509Certificate(ca), new Barrier()];
    const onClientAuthorities = (authorities: readonly X509Certificate[]): void => {
      if (authorities.every((one) => one.fingerprint256 === fingerprint256)) trusted.open();
    };
    const replace = (path: string): void => {
      writeFileSync(`${path}.new`, ca);
      renameSync(`${path}.new`, path);
    };
    return { replace, trusted, onClientAuthorities };
  }

  test("takes other authorities though its certificate can't be used, and a certificate though its authorities can't", async (context) => {
    const { replace: replaceCa, trusted, onClientAuthorities } = anotherAuthority();
    let told = 0;
    const opened = await open(context, authority.issue({ commonName: "the old one" }), authority.ca, {
      onClientAuthorities: (all) => (told++, onClientAuthorities(all)),
      intervalMs: 3_600_000,
    });
    const { connect: client, replace, door, caFile, log, failures } = opened;
    replace({ cert: authority.issue().cert, key: authority.issue().key });
    replaceCa(caFile);
    assert.equal(await door.reload(), false);
    await trusted.opened;
    assert.equal(subjectOf(await client()), "the old one");
    const own = authority.issue({ names: [], commonName: "alice", client: true });
    const refused = (await client(own)).resume().on("error", () => undefined);
    await new Promise<void>((resolve) => refused.on("close", () => resolve()));
    assert.ok(
      log.some(({ message }) => message === "a client's certificate was refused"),
      "its authority is gone",
    );
    assert.deepEqual(failures, ["certificate"]);
    replace(authority.issue({ commonName: "the new one" }));
    writeFileSync(caFile, "");
    assert.equal(await door.reload(), false);
    assert.equal(subjectOf(await client()), "the new one");
    // Nothing is other than it was.
    assert.equal(await door.reload(), false);
    assert.equal(told, 3, "at the start, and as something changed");
    assert.deepEqual(
      log.filter(({ level }) => level === "error").map(({ message }) => message),
      [
        "the TLS certificate is not changed: its files can't be used",
        ...Array<string>(2).fill("the authorities of clients are not changed: their file can't be used"),
      ],
    );
  });

  test("goes on with its files where something else can't take them, and says so", async (context) => {
    let times = 0;
    const {
      door,
      log,
      connect: client,
      caFile,
    } = await open(context, authority.issue(), authority.ca, {
      intervalMs: 3_600_000,
      onClientAuthorities: () => {
        if (++times === 2) throw new Error("no such key");
      },
    });
    writeFileSync(caFile, `${authority.ca}\n${makeAuthority().ca}`);
    assert.equal(await door.reload(), false);
    assert.deepEqual(
      log.filter(({ level }) => level === "error").map(({ message, fields }) => [message, fields["fault"]]),
      [["the TLS files can't be taken", "no such key"]],
    );
    assert.equal(await door.reload(), true);
    assert.equal(await said(await client()), "http/1.1");
  });

  test("takes the authorities that took the place of others while these were read", async (context) => {
    const { replace, trusted, onClientAuthorities } = anotherAuthority();
    const alive = setInterval(() => {}, 60_000); // a watch never keeps the process alive
    context.after(() => clearInterval(alive));
    const read = WatchedFile.read.bind(WatchedFile);
    let reads = 0;
    context.mock.method(WatchedFile, "read", async (path: string, maxBytes: number) => {
      const text = await read(path, maxBytes);
      if (!path.endsWith("ca.pem") || ++reads > 1) return text;
      // Looks much less often: the door has seen what it sees.
      await new Promise<void>((resolve) => {
        const other = new WatchedFile([path], () => (other.close(), resolve()), 200);
        replace(path);
      });
      return text;
    });
    await open(context, authority.issue(), authority.ca, { onClientAuthorities });
    await trusted.opened;
  });

  test("takes authorities that could not be read for a while, and says so once", async (context) => {
    const { replace, trusted, onClientAuthorities } = anotherAuthority();
    const { caFile, log } = await open(context, authority.issue(), authority.ca, { onClientAuthorities });
    const read = WatchedFile.read.bind(WatchedFile);
    let failures = 0;
    context.mock.method(WatchedFile, "read", (path: string, maxBytes: number) =>
      path === caFile && ++failures <= 3
        ? Promise.reject(Object.assign(new Error("EIO: i/o error, read"), { code: "EIO", syscall: "read" }))
        : read(path, maxBytes),
    );
    replace(caFile);
    await trusted.opened;
    assert.deepEqual([failures, log.filter(({ level }) => level === "error").length], [4, 1]);
  });

  test("warns of a key that every user of the machine may read", async () => {
    const { cert, key } = authority.issue();
    const [files, { log, lines }] = [{ cert: join(tempDir(), "cert.pem"), key: join(tempDir(), "key.pem"), clientCa: null }, keptLog()];
    writeFileSync(files.cert, cert);
    writeFileSync(files.key, key, { mode: 0o644 });
    const door = await TlsDoor.open({ files, clock: new ManualClock(Date.now()), log, onSecure: () => undefined, plainAnswer: "" });
    door.close();
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields["file"]]),
      [["warn", files.key]],
    );
  });

  test("warns of a certificate that ends soon", async (context) => {
    const until = new Date(Date.now() + 13 * 86_400_000);
    const { log } = await open(context, authority.issue({ from: LONG_AGO, until }));
    assert.deepEqual(
      log.map(({ level, message }) => [level, message]),
      [["warn", "the TLS certificate ends soon"]],
    );
  });

  test("warns each day of what ends soon, and when it has ended, though nothing is read again", async (context) => {
    const atDay = (day: number): Date => new Date(Date.now() + (day + 0.5) * DAY_MS);
    const ends: number[] = [];
    const { clock, log } = await open(context, authority.issue({ from: LONG_AGO, until: atDay(15) }), authority.ca, {
      onEnd: (ms) => ends.push(ms),
    });
    assert.deepEqual(ends, [Math.floor(atDay(15).getTime() / 1000) * 1000]);
    for (let hour = 0; hour < 17 * 24; hour += 1) clock.advance(DAY_MS / 24);
    assert.deepEqual(
      log.map(({ level, message }) => [level, message]),
      [...Array(14).fill(["warn", "the TLS certificate ends soon"]), ...Array(2).fill(["warn", "the TLS certificate has expired"])],
    );
  });

  test("warns of an authority of clients that has ended, with its name", async (context) => {
    const { log, clock, caFile } = await open(context, authority.issue({ until: new Date(Date.now() + 30_000 * DAY_MS) }), authority.ca);
    clock.advance(Date.parse(new X509Certificate(authority.ca).validTo) - clock.nowMs());
    const told = log.map(({ message }) => message);
    assert.deepEqual([...new Set(told)], ["an authority of clients ends soon", "an authority of clients has expired"]);
    assert.deepEqual([log.at(-1)?.fields["file"], log.at(-1)?.fields["name"]], [caFile, "CN=A test's authority"]);
  });

  test("warns of an authority whose own is not in the file, as its clients are refused, and says whose connection it was", async (context) => {
    const below = authority.below("an issuing authority");
    const { connect: client, log, failures, caFile, door } = await open(context, authority.issue(), below.ca);
    const own = below.issue({ names: [], commonName: "alice", client: true });
    await client({ key: own.key, cert: own.cert + below.ca })
      .then(said)
      .catch(() => undefined);
    assert.deepEqual(failures, ["certificate"]);
    const [warning, refusal] = log;
    assert.deepEqual(
      [warning?.message, warning?.fields],
      ["the clients of an authority are refused: who has signed it is not in the file", { file: caFile, name: "CN=an issuing authority" }],
    );
    const { client: address, name, serialNumber } = refusal?.fields ?? {};
    assert.deepEqual([address, name, typeof serialNumber], ["127.0.0.1", "alice", "string"]);
    const lowest = below.below("the lowest");
    writeFileSync(caFile, lowest.ca + below.ca);
    assert.equal(await door.reload(), true);
    const named = log.filter(({ level }) => level === "warn").map(({ fields }) => fields["name"]);
    assert.deepEqual(named, ["CN=an issuing authority", "CN=the lowest", "CN=an issuing authority"]);
    writeFileSync(caFile, below.ca + authority.ca);
    assert.equal(await door.reload(), true);
    assert.equal(await said(await client({ key: own.key, cert: own.cert + below.ca })), "http/1.1");
    assert.equal(log.filter(({ level }) => level === "warn").length, 3);
  });

  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    /** Whether a second connection resumes the session of a first, with `between` in between. */
    const resumes = async ({ connect: client }: Opened, own: ConnectionOptions, between: () => unknown): Promise<boolean> => {
      const socket = await client({ maxVersion, ...own });
      // By 1.2 it is part of the handshake, by 1.3 it comes after it.
      let session: Buffer | undefined = socket.getSession();
      socket.on("session", (later: Buffer) => (session = later));
      await said(socket);
      assert.ok(session !== undefined);
      await between();
      return (await client({ maxVersion, ...own, session })).isSessionReused();
    };

    test(`resumes no session that began before the files were read again, by ${maxVersion}`, async (context) => {
      const opened = await open(context);
      assert.equal(await resumes(opened, {}, () => undefined), true);
      assert.equal(await resumes(opened, {}, () => opened.door.reload()), false);
    });

    test(`resumes no session where it asks clients for certificates, by ${maxVersion}`, async (context) => {
      const opened = await open(context, authority.issue(), authority.ca);
      const own = authority.issue({ names: [], commonName: "alice", client: true });
      assert.equal(await resumes(opened, own, () => undefined), false);
      assert.equal(await resumes(opened, {}, () => undefined), false);
    });
  }
});

test("a server whose certificate can't be used does not start, and its directory is free again", async () => {
  const dir = tempDir();
  const options = { dir, port: 0, logLevel: "silent", tlsCert: "/nowhere/cert.pem", tlsKey: "/nowhere/key.pem" } as const;
  await assert.rejects(start(options, REQUEST_LIMITS), (error) => error instanceof StartError && error.code === "invalid-option");
  const server = await start({ dir, port: 0, logLevel: "silent" }, REQUEST_LIMITS);
  assert.equal(await server.reload(), true);
  await server.close();
});

/** A server with TLS. */
async function startSecure(t: TestContext, more: Partial<ServerOptions> = {}): Promise<RunningServer> {
  const dir = tempDir();
  const { cert, key } = authority.issue();
  const [tlsCert, tlsKey] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  writeFileSync(tlsCert, cert);
  writeFileSync(tlsKey, key);
  const server = await start({ dir: join(dir, "d"), port: 0, logLevel: "silent", tlsCert, tlsKey, ...more }, REQUEST_LIMITS);
  t.after(() => server.close());
  return server;
}

for (const [title, afterMs] of [
  ["no longer than for a first request", REQUEST_LIMITS.firstRequestTimeout],
  ["not beyond --shutdown-timeout", 500],
] as const)
  test(`a stop waits for a handshake ${title}`, async (t) => {
    const { log, lines } = keptLog();
    const clock = new WatchedClock();
    const server = await startSecure(t, { clock, log, shutdownTimeoutMs: afterMs === 500 ? afterMs : 30_000 });
    const silent = connectPlain(server.port, "127.0.0.1");
    // A connection that came later is taken: so is this one.
    await fetch(server.url.replace("https:", "http:"));
    const cut = once(silent.resume(), "close");
    const closed = server.close();
    await clock.armed(afterMs);
    clock.advance(afterMs);
    await Promise.all([cut, closed]);
    assert.ok(!lines.some(({ fields }) => String(fields["fault"]).includes("timeout")));
  });

test("a server with TLS says to who asks without it that its URLs begin with https://", async (t) => {
  const server = await startSecure(t);
  const answer = await fetch(server.url.replace("https:", "http:"));
  assert.equal(answer.status, 400);
  assert.match(await answer.text(), /"code":"bad-request","detail":".*https:/);
  const client = await runClient(["ls"], { url: server.url.replace("https:", "http:") });
  assert.equal(client.status, 65);
  assert.match(client.stderr, /https:/);
});
