import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { Listener, ListenError } from "../../../src/http/listen/listener.js";
import { startServer as start, StartError } from "../../../src/server.js";
import { REQUEST_LIMITS } from "../../../src/http/http-server.js";
import { lacksInjection } from "../../helpers/machine.js";
import { startStreamdir } from "../../helpers/process.js";
import { startServer } from "../../helpers/test-server.js";
import { tempDir } from "../../helpers/temp-dir.js";

function statusBySocket(socketPath: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ socketPath, path: "/health", headers: { host: "localhost" } }, (res) => resolve(res.resume().statusCode))
      .on("error", reject)
      .end();
  });
}

async function refusal(listen: string, more: object = {}): Promise<StartError> {
  const options = { dir: tempDir(), listen, logLevel: "silent", ...more } as const;
  try {
    const server = await start(options, REQUEST_LIMITS);
    await server.close();
  } catch (error) {
    if (error instanceof StartError) return error;
    throw error;
  }
  return assert.fail("it started");
}

describe("a server with several addresses", () => {
  test("serves the same streams on each, and names them all", async (context) => {
    const path = join(tempDir(), "a.sock");
    const listen = `127.0.0.1:0,unix:${path},[::1]:0`;
    const dir = tempDir();
    const server = await start({ dir, listen, logLevel: "silent" }, REQUEST_LIMITS);
    context.after(() => server.close());
    const [first = "", second, third = ""] = server.listening;
    assert.deepEqual([first, second], [`127.0.0.1:${server.port}`, `unix:${path}`]);
    assert.equal(server.url, `http://127.0.0.1:${server.port}/v1/stream/`);
    await fetch(`${server.url}a`, { method: "PUT", headers: { "content-type": "text/plain" }, body: "x" });
    assert.equal(await (await fetch(`http://${third}/v1/stream/a`)).text(), "x");
    assert.equal(await statusBySocket(path), 200);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    await server.close();
    assert.ok(!existsSync(path));
  });

  test("at `*` serves IPv4 and IPv6", async (context) => {
    const server = await start({ dir: tempDir(), listen: "*:0", insecure: true, logLevel: "silent" }, REQUEST_LIMITS);
    context.after(() => server.close());
    for (const host of ["127.0.0.1", "[::1]"]) assert.equal((await fetch(`http://${host}:${server.port}/readyz`)).status, 200, host);
  });

  test("at `*` serves IPv4 on a machine without IPv6", { skip: lacksInjection }, async (context) => {
    const traced = async (inject: readonly string[]): Promise<{ readonly url: string; readonly sockets: string }> => {
      const trace = join(tempDir(), "trace");
      // The tracer is not the parent: what the test kills is the server.
      const under = ["strace", "-D", "-o", trace, "-e", "trace=socket", ...inject];
      const server = startStreamdir(context, ["serve", tempDir(), "--listen", "*:0", "--insecure"], { under });
      const [url = ""] = /http:[^"]+/.exec(await server.stdoutLine(/http:/)) ?? [];
      return { url, sockets: readFileSync(trace, "utf8") };
    };
    const { sockets } = await traced([]);
    const nth = (sockets.split("AF_INET6")[0] ?? "").split("socket(").length - 1;
    const { url } = await traced(["-e", `inject=socket:error=EAFNOSUPPORT:when=${nth}`]);
    assert.match(url, /^http:\/\/0\.0\.0\.0:/);
    assert.equal((await fetch(new URL("/readyz", url))).status, 200);
  });

  test("takes over the socket that a killed server left, and none that is in use", async (context) => {
    const path = join(tempDir(), "a.sock");
    const script = `require("node:net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`;
    await once(spawn(process.execPath, ["-e", script]), "exit");
    assert.ok(existsSync(path));
    const server = await start({ dir: tempDir(), listen: `unix:${path}`, unixMode: "666", logLevel: "silent" }, REQUEST_LIMITS);
    context.after(() => server.close());
    assert.deepEqual([server.port, server.url], [0, "http://localhost/v1/stream/"]);
    assert.equal(statSync(path).mode & 0o777, 0o666);
    assert.equal(await statusBySocket(path), 200);
    const { code, message } = await refusal(`unix:${path}`);
    assert.deepEqual(
      [code, message],
      ["port-unusable", `Cannot listen on unix:${path}: a server listens there, or a file that is no socket is in its place`],
    );
    assert.equal(await statusBySocket(path), 200);
  });

  test("serves the listening socket that it was started with", async (context) => {
    const inherited = createServer().listen(0, "127.0.0.1");
    await once(inherited, "listening");
    context.after(() => inherited.close());
    // The number of the descriptor is known to Node alone.
    const { fd } = (inherited as unknown as { _handle: { fd: number } })._handle;
    const { port } = inherited.address() as AddressInfo; // it listens on a port
    const script = `
      import { startServer } from ${JSON.stringify(new URL("../../../src/server.ts", import.meta.url).href)};
      import { REQUEST_LIMITS } from ${JSON.stringify(new URL("../../../src/http/http-server.ts", import.meta.url).href)};
      const server = await startServer({ dir: ${JSON.stringify(tempDir())}, listen: "fd:3", logLevel: "silent" }, REQUEST_LIMITS);
      console.log(JSON.stringify([server.port, server.url, server.listening]));
    `;
    const child = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), "--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit", fd],
    });
    const gone = once(child, "exit");
    context.after(async () => {
      child.kill("SIGKILL");
      await gone;
    });
    assert.ok(child.stdout !== null);
    const [line] = (await once(child.stdout, "data")) as [Buffer]; // the event's argument
    assert.deepEqual(JSON.parse(line.toString()), [port, `http://127.0.0.1:${port}/v1/stream/`, ["fd:3"]]);
    inherited.close();
    assert.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200);
  });
});

describe("an address that can't be listened on", () => {
  test("is named, and the other addresses are closed again", async () => {
    const path = join(tempDir(), "a.sock");
    const file = join(tempDir(), "a.txt");
    writeFileSync(file, "");
    assert.equal((await refusal(`unix:${path},unix:${file}`)).message.startsWith(`Cannot listen on unix:${file}: `), true);
    assert.ok(!existsSync(path));
    assert.match((await refusal(`unix:${path}/b`)).message, /not|folder/);
    assert.match((await refusal("fd:9999")).message, /^Cannot listen on fd:9999: /);
  });

  test("is one beyond loopback, unless there is --auth or --insecure", async (context) => {
    for (const listen of ["0.0.0.0:0", "[::]:0", "127.0.0.1:0,*:0"]) {
      const { code, message } = await refusal(listen);
      assert.equal(code, "invalid-option");
      assert.match(message, /--auth .* --insecure /);
    }
    const { server } = await startServer(context, { host: "0.0.0.0", insecure: true });
    assert.equal(server.url, `http://0.0.0.0:${server.port}/v1/stream/`);
  });

  test("takes no connection before it is refused", async (context: TestContext) => {
    const probe = createServer().listen(0, "0.0.0.0");
    await once(probe, "listening");
    const { port } = probe.address() as AddressInfo; // it listens on a port
    await new Promise((resolve) => probe.close(resolve));
    let count = 0;
    const opening = Listener.open(
      { kind: "tcp", host: "0.0.0.0", port },
      { unixMode: 0o600, reach: "loopback", onConnection: () => (count += 1), onFault: () => undefined },
    );
    const client = connect(port, "127.0.0.1").on("error", () => undefined);
    context.after(() => client.destroy());
    await assert.rejects(opening, ListenError);
    assert.equal(count, 0);
  });
});
