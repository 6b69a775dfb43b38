import assert from "node:assert/strict";
import { Layout } from "../../src/storage/file/format/layout.js";
import { startStreamdir, type TestProcess, type TestScope } from "../helpers/process.js";

/** Sizes at which a few appends make segments, and journal files rotate. */
const SIZES = ["--segment-bytes", "4KiB", "--journal-bytes", "64KiB", "--journal-bypass-bytes", "8KiB"];

/** An answer, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** The real process on a directory; it may be ended and started again. */
export class ServedDirectory {
  readonly dir: string;
  readonly layout: Layout;
  readonly #scope: TestScope;
  readonly #under: readonly string[];
  #process: TestProcess | null = null;
  #url = "";

  /** `under` is the command that the server is started under, if any. */
  constructor(scope: TestScope, dir: string, under: readonly string[] = []) {
    this.#scope = scope;
    this.#under = under;
    this.dir = dir;
    this.layout = new Layout(dir);
  }

  /** Starts the server; rejects with what it said when it does not come up. */
  async start(): Promise<void> {
    const started = startStreamdir(this.#scope, [this.dir, "--port", "0", "--log-format", "json", "--log-level", "warn", ...SIZES], {
      under: this.#under,
    });
    this.#process = started;
    this.#url = await started.stdoutLine(/http:/).then(
      (line) => /http:[^\s"]+/.exec(line)?.[0] ?? "",
      async () => {
        const { status, stderr } = await started.ended;
        throw new Error(`${status}: ${stderr}`);
      },
    );
  }

  /** Ends the server; resolves to what it logged. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<readonly Record<string, unknown>[]> {
    this.#process?.kill(signal);
    const ended = await this.#process?.ended;
    if (signal === "SIGTERM") assert.equal(ended?.status, 0, ended?.stderr);
    return (ended?.stderr ?? "")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, unknown>); // what createLog writes
  }

  /** Resolves to how the server ended, if it does by itself. */
  get ended(): TestProcess["ended"] {
    assert.ok(this.#process !== null);
    return this.#process.ended;
  }

  /** Waits for a line of its log. */
  async logged(pattern: RegExp): Promise<string> {
    assert.ok(this.#process !== null);
    return this.#process.stderrLine(pattern);
  }

  async ask(method: string, target: string, body?: Buffer | string, headers: Record<string, string> = {}): Promise<Answer> {
    const type = body === undefined ? {} : { "Content-Type": "application/octet-stream" };
    const response = await fetch(`${this.#url}${target}`, {
      method,
      headers: { ...type, ...headers },
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) };
  }

  /** Asks, and wants this status. */
  async must(status: number, method: string, target: string, body?: Buffer | string): Promise<Answer> {
    const answer = await this.ask(method, target, body);
    assert.equal(answer.status, status, `${method} ${target}: ${answer.status} ${String(answer.body.subarray(0, 300))}`);
    return answer;
  }

  /** Asks, and wants to be told that the stream is damaged. */
  async mustBeDamaged(method: string, target: string, body?: Buffer | string): Promise<string | null> {
    const answer = await this.must(500, method, target, body);
    assert.equal(answer.headers.get("content-type"), "application/problem+json");
    if (method !== "HEAD") assert.equal((JSON.parse(String(answer.body)) as { code: string }).code, "stream-damaged"); // a problem document
    return answer.headers.get("stream-next-offset");
  }

  /** Runs `streamdir verify` on the directory, which no server may have open. */
  verify(): TestProcess["ended"] {
    return startStreamdir(this.#scope, ["verify", this.dir]).ended;
  }

  /** Runs `streamdir repair --yes` on it, as the server's own user. */
  repair(): TestProcess["ended"] {
    return startStreamdir(this.#scope, ["repair", "--yes", this.dir], { under: this.#under }).ended;
  }
}
