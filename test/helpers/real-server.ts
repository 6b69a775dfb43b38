import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { join } from "node:path";
import { startStreamdir, type Ended, type TestProcess, type TestScope } from "./process.js";
import { tempDir } from "./temp-dir.js";

/** What a server said to one request. */
export interface Reply {
  readonly status: number;
  readonly body: string;
  readonly headers: http.IncomingHttpHeaders;
}

/** What a request has beyond its method and target. */
export interface Wish {
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  /** Without one, each request has a connection of its own. */
  readonly agent?: http.Agent;
}

/** One request; rejects when the connection breaks. */
export async function ask(url: string, method: string, { headers = {}, body = "", agent }: Wish = {}): Promise<Reply> {
  const request = http.request(url, { method, headers, agent: agent ?? false });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage]; // the event's argument
  let text = "";
  for await (const chunk of response.setEncoding("latin1")) text += String(chunk);
  return { status: response.statusCode ?? 0, body: text, headers: response.headers };
}

/** The `code` of a problem document. */
export function codeOf({ body }: Reply): string {
  return (JSON.parse(body) as { code: string }).code; // every problem document has one
}

/** The command `streamdir` as a process of its own, on a directory that outlives it. */
export class RealServer {
  readonly dir: string;
  readonly #scope: TestScope;
  readonly #args: readonly string[];
  #process: TestProcess | null = null;
  /** Keeps connections, for those requests that bring no agent of their own. */
  agent: http.Agent | undefined;
  #url = "";
  /** How often it has been started, and who waits for the next time. */
  #lives = 0;
  #waiting: (() => void)[] = [];

  /** `args` are flags of the command. */
  constructor(scope: TestScope, args: readonly string[], dir = join(tempDir(), "data")) {
    this.#scope = scope;
    this.#args = args;
    this.dir = dir;
  }

  /** The process that was started last. */
  get process(): TestProcess {
    assert.ok(this.#process !== null, "the server was started");
    return this.#process;
  }

  /** Begins a new process on the directory; resolves when it serves. */
  async start(under: readonly string[] = []): Promise<void> {
    const process = startStreamdir(this.#scope, [this.dir, "--port", "0", "--log-level", "info", "--log-format", "text", ...this.#args], {
      under,
    });
    this.#process = process;
    const ready = await process.stdoutLine(/http:/).catch(async (error: unknown) => {
      throw new Error(`the server did not start: ${(await process.ended).stderr}`, { cause: error });
    });
    this.#url = /http:[^\s"]+/.exec(ready)?.[0] ?? "";
    this.#lives += 1;
    for (const goOn of this.#waiting.splice(0)) goOn();
  }

  /** Ends the process as its supervisor does, and gives what it said. */
  async stop(): Promise<Ended> {
    this.process.kill("SIGTERM");
    return this.process.ended;
  }

  /** Kills the server, while clients are at work, and starts it again. */
  async killAndRestart(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.process.ended;
    await this.start();
  }

  /** One request to a stream, or to a path that begins with `/`. */
  ask(method: string, target: string, wish: Wish = {}): Promise<Reply> {
    return ask(
      target.startsWith("/") ? new URL(target, this.#url).href : `${this.#url}${target}`,
      method,
      this.agent === undefined ? wish : { agent: this.agent, ...wish },
    );
  }

  /** All of a stream up to its tail. */
  async textOf(name: string): Promise<string> {
    let text = "";
    for (let offset = "-1", isThere = false; !isThere;) {
      const { body, headers } = await this.ask("GET", `${name}?offset=${offset}`);
      text += body;
      offset = String(headers["stream-next-offset"]);
      isThere = headers["stream-up-to-date"] === "true";
    }
    return text;
  }

  /** What a stream's name is appended to. */
  get url(): string {
    return this.#url;
  }

  /** The same request again and again until it has an answer: what an honest client does. */
  async insist(method: string, target: string, wish: Wish = {}): Promise<Reply> {
    for (;;) {
      const life = this.#lives;
      try {
        return await this.ask(method, target, wish);
      } catch (error) {
        // The connection broke with the server; whether the append is there is what the retry finds out.
        assert.ok(error instanceof Error);
        await this.nextLife(life);
      }
    }
  }

  /** How often the server has been started. */
  get lives(): number {
    return this.#lives;
  }

  /** Resolves when the server has been started more than `lives` times. */
  async nextLife(lives: number): Promise<void> {
    if (this.#lives === lives) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** What `streamdir verify` says of the directory, which no server may have open; fails unless all is sound. */
  async verify(): Promise<void> {
    const { status, stdout, stderr } = await startStreamdir(this.#scope, ["verify", this.dir]).ended;
    assert.equal(status, 0, `verify: ${stdout}${stderr}`);
  }
}
