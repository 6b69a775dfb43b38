import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, constants, type ClientHttp2Session, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from "node:http2";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { RequestLimits } from "../../src/http/http-server.js";
import type { ServerOptions } from "../../src/server.js";
import { makeAuthority, type Authority } from "./certificates.js";
import { FrameConnection } from "./frames.js";
import { tempDir } from "./temp-dir.js";
import { startServer, type TestScope, type TestServer } from "./test-server.js";

/** One for all tests of a process: keys take a while to make. */
const authority = makeAuthority();
let paths: { readonly tlsCert: string; readonly tlsKey: string } | null = null;

/** The options of a server with a certificate of {@link testAuthority} for localhost. */
export function tlsOptions(): { readonly tlsCert: string; readonly tlsKey: string } {
  if (paths !== null) return paths;
  const dir = tempDir();
  const { cert, key } = authority.issue();
  paths = { tlsCert: join(dir, "cert.pem"), tlsKey: join(dir, "key.pem") };
  writeFileSync(paths.tlsCert, cert);
  writeFileSync(paths.tlsKey, key, { mode: 0o600 });
  return paths;
}

/** Who has signed the certificates of test servers. */
export function testAuthority(): Authority {
  return authority;
}

/** What came of a request over HTTP/2. */
export interface StreamReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The code that its stream was closed with. */
  readonly code: number;
}

/** A server with TLS, and the ways to it. */
export class SecureServer {
  readonly test: TestServer;
  readonly #clients: (() => void)[];

  /** `clients` are ended before the server is, which would wait for them. */
  constructor(test: TestServer, clients: (() => void)[]) {
    this.test = test;
    this.#clients = clients;
  }

  /** A connection of HTTP/2 by Node's own client. */
  session(): ClientHttp2Session {
    const session = connect(`https://127.0.0.1:${this.test.port}`, { ca: authority.ca });
    session.on("error", () => undefined);
    this.#clients.push(() => session.destroy());
    return session;
  }

  /** A connection of HTTP/2 on which the test writes the frames. */
  async frames(options: Parameters<typeof FrameConnection.open>[2] = {}): Promise<FrameConnection> {
    const connection = await FrameConnection.open(this.test.port, authority.ca, options);
    this.#clients.push(() => connection.close());
    return connection;
  }

  /** Whether others are served: a new connection gets its answer. */
  async isServing(): Promise<boolean> {
    const session = this.session();
    const { status } = await ask(session, "GET", "/health");
    session.close();
    return status === 200;
  }
}

/** Starts a server with TLS for a test. */
export async function startSecure(
  scope: TestScope,
  options: Partial<ServerOptions> = {},
  limits: Partial<RequestLimits> = {},
): Promise<SecureServer> {
  const clients: (() => void)[] = [];
  scope.after(async () => {
    for (const end of clients) end();
  });
  return new SecureServer(await startServer(scope, { ...tlsOptions(), ...options }, limits), clients);
}

/** One request over HTTP/2; `target` is a stream's name with its query, or a path from `/` on. */
export async function ask(
  session: ClientHttp2Session,
  method: string,
  target: string,
  { headers = {}, body }: { headers?: Record<string, string>; body?: string | Buffer } = {},
): Promise<StreamReply> {
  const path = target.startsWith("/") ? target : `/v1/stream/${target}`;
  const stream = session.request({ ":method": method, ":path": path, ...headers }, { endStream: body === undefined });
  stream.on("error", () => undefined);
  const answered = once(stream, "response");
  const closed = once(stream, "close");
  if (body !== undefined) stream.end(body);
  const [response] = (await answered) as [IncomingHttpHeaders & IncomingHttpStatusHeader]; // the event's argument
  const whole = await text(stream).catch(() => "");
  await closed;
  return { status: response[":status"] ?? 0, headers: response, body: whole, code: stream.rstCode ?? constants.NGHTTP2_NO_ERROR };
}
