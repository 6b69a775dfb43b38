import assert from "node:assert/strict";
import http from "node:http";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { unless } from "../../helpers/machine.js";
import { startProgram, type TestProcess } from "../../helpers/process.js";
import { ask } from "../../helpers/real-server.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { freePort } from "../../helpers/free-ports.js";

const MAIN = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url));
const RESTARTS = 3;
const CLIENTS = 24;
/** Appends between two restarts. */
const MEANWHILE = 400;

/** A server whose socket outlives it, as that of systemd does. It is started again whenever it ends. */
class ActivatedServer {
  readonly url: string;
  readonly #program: TestProcess;

  constructor(program: TestProcess, url: string) {
    this.#program = program;
    this.url = url;
  }

  static async start(scope: Parameters<typeof startProgram>[0], flags: readonly string[]): Promise<ActivatedServer> {
    const port = await freePort();
    // Each life tells its process id, and ends with the shell.
    const loop = 'while true; do setpriv --pdeathsig KILL sh -c \'echo "life $$" >&2; LISTEN_PID=$$ exec "$@"\' sh "$@"; done';
    const node = [process.execPath, "--import", import.meta.resolve("tsx"), MAIN, "serve", tempDir(), ...flags];
    const args = ["-l", `127.0.0.1:${port}`, "-E", "UV_THREADPOOL_SIZE=32", "sh", "-c", loop, "sh", ...node];
    const program = startProgram(scope, "systemd-socket-activate", args);
    await program.stderrLine(/Listening on/);
    return new ActivatedServer(program, `http://127.0.0.1:${port}/v1/stream/`);
  }

  /** The process that serves for the `count`th time. */
  async life(count: number): Promise<number> {
    return Number((await this.#program.stderrLine(/^life \d+$/, count)).slice("life ".length));
  }
}

/** Clients that append one line after another, each on its own connection, and note what was acknowledged. */
class Appenders {
  readonly acknowledged: string[] = [];
  readonly lost: string[] = [];
  readonly #url: string;
  readonly #isOver: () => boolean;
  #waiting: { readonly count: number; readonly done: () => void } | null = null;

  constructor(url: string, isOver: () => boolean) {
    this.#url = url;
    this.#isOver = isOver;
  }

  /** One of them; one that `keeps` its connection as long as the server lets it. */
  async run(name: string, keeps: boolean): Promise<void> {
    const agent = keeps ? new http.Agent({ keepAlive: true, maxSockets: 1 }) : undefined;
    for (let at = 0; !this.#isOver(); at += 1) {
      const line = `${name}.${at}\n`;
      const wish = { headers: { "Content-Type": "text/plain" }, body: line, ...(agent === undefined ? {} : { agent }) };
      const status = await ask(this.#url, "POST", wish).then(
        (reply) => reply.status,
        (error: unknown) => String(error),
      );
      if (status === 204) this.acknowledged.push(line);
      else this.lost.push(`${line.trimEnd()}: ${status}`);
      if (this.#waiting !== null && this.acknowledged.length >= this.#waiting.count) this.#waiting.done();
      if (this.lost.length > 0) this.#waiting?.done();
    }
    agent?.destroy();
  }

  /** Resolves after so many more appends, or the first that was lost. */
  async more(count: number): Promise<void> {
    await new Promise<void>((done) => (this.#waiting = { count: this.acknowledged.length + count, done }));
    this.#waiting = null;
  }
}

describe("a restart under load", () => {
  test(
    "whose socket stays open loses no request",
    { skip: unless(["systemd-socket-activate", "--version"], "run systemd-socket-activate (the package systemd)") },
    async (t) => {
      const server = await ActivatedServer.start(t, ["--shutdown-delay=300ms"]);
      const url = `${server.url}log`;
      assert.equal((await ask(url, "PUT", { headers: { "Content-Type": "text/plain" } })).status, 201);
      let isOver = false;
      const appenders = new Appenders(url, () => isOver);
      const clients = Array.from({ length: CLIENTS }, (_, at) => appenders.run(`c${at}`, at % 2 === 0));
      for (let life = 1; life <= RESTARTS; life += 1) {
        await appenders.more(MEANWHILE);
        process.kill(await server.life(life), "SIGTERM");
        await server.life(life + 1);
      }
      await appenders.more(MEANWHILE);
      isOver = true;
      await Promise.all(clients);
      assert.deepEqual(appenders.lost, []);
      const stored = (await ask(`${url}?offset=-1`, "GET")).body.match(/.*\n/g) ?? [];
      assert.deepEqual(stored.toSorted(), appenders.acknowledged.toSorted());
    },
  );
});
