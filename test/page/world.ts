import assert from "node:assert/strict";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { freePort } from "../helpers/free-ports.js";
import { ChromiumPage, type Screen } from "../helpers/chromium.js";
import { startStreamdir } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

export const DESK: Screen = { width: 1200, height: 760 };
export const TELEPHONE: Screen = { width: 390, height: 844, isTelephone: true };
export const JSON_TYPE = { "Content-Type": "application/json" };
export const TEXT = { "Content-Type": "text/plain" };

/** A generous deadline: machines that test are slow. */
const DEADLINE_MS = Number(process.env["PAGE_DEADLINE_MS"] ?? 60_000);
/** What is shown of each message. */
export const ROWS = ".rows .row:not([hidden]) .body";

/** What a world differs in from others. */
export interface WorldOptions {
  /** Of the server. */
  readonly flags?: readonly string[];
  readonly screen?: Screen;
}

/** A server, and a browser that has its page open. */
export class World {
  readonly page: ChromiumPage;
  readonly dir: string;
  readonly port: number;
  /** Where the page is, when not at the server itself: a URL that names are appended to. */
  behind: string | null = null;
  readonly #context: TestContext;
  readonly #flags: readonly string[];
  #server: ReturnType<typeof startStreamdir>;

  private constructor(context: TestContext, page: ChromiumPage, dir: string, port: number, flags: readonly string[]) {
    this.#context = context;
    this.page = page;
    this.dir = dir;
    this.port = port;
    this.#flags = flags;
    this.#server = this.#start();
  }

  static async open(context: TestContext, { flags = [], screen = DESK }: WorldOptions = {}): Promise<World> {
    const world = new World(context, await ChromiumPage.open(context), tempDir(), await freePort(), flags);
    await world.ready();
    await world.page.watchFaults();
    await world.page.showOn(screen);
    return world;
  }

  async ready(): Promise<void> {
    await this.#server.stdoutLine(/serv/);
  }

  async killAndStartAgain(): Promise<void> {
    await this.kill();
    this.#server = this.#start();
    await this.ready();
  }

  async kill(): Promise<void> {
    this.#server.kill("SIGKILL");
    await this.#server.ended;
  }

  /** Lets the server read its auth file again. */
  async reload(): Promise<void> {
    this.#server.kill("SIGHUP");
    await this.#server.stderrLine(/auth file/);
  }

  #start(): ReturnType<typeof startStreamdir> {
    return startStreamdir(this.#context, ["serve", this.dir, "--port", String(this.port), ...this.#flags], {});
  }

  url(name = ""): string {
    return `http://127.0.0.1:${this.port}/v1/stream/${name}`;
  }

  async send(method: string, name: string, headers: Readonly<Record<string, string>> = {}, body?: string | Buffer): Promise<Response> {
    const answer = await fetch(this.url(name), { method, headers, ...(body === undefined ? {} : { body }) });
    assert.ok(answer.ok, `${method} ${name}: ${answer.status} ${answer.ok ? "" : await answer.text()}`);
    return answer;
  }

  async open(hash = ""): Promise<void> {
    await this.page.goTo("about:blank");
    await this.page.goTo(`${this.behind ?? this.url()}__ds/ui/${hash}`);
    await this.page.until("document.readyState === 'complete' && document.querySelector('#main').childElementCount > 0");
  }

  /** Waits until a condition is true in the page; says what the page shows when that takes too long. */
  async until(condition: string): Promise<void> {
    const isLate = once(AbortSignal.timeout(DEADLINE_MS), "abort").then(() => "late");
    if ((await Promise.race([this.page.until(condition), isLate])) !== "late") return;
    const shown = await this.page.evaluate("location.hash + ' ' + document.body.innerText");
    assert.fail(`${condition} is not so: ${String(shown).slice(0, 2000)} ${this.page.faults.join(" ").slice(0, 2000)}`);
  }

  /** Waits until the text of an element has a part. */
  async sees(selector: string, part: string): Promise<void> {
    await this.until(`(document.querySelector(${JSON.stringify(selector)})?.textContent ?? '').includes(${JSON.stringify(part)})`);
  }

  async texts(selector: string): Promise<unknown> {
    return this.page.evaluate(`Array.from(document.querySelectorAll(${JSON.stringify(selector)}), (one) => one.textContent)`);
  }

  /** Clicks what has this text. */
  async click(label: string): Promise<void> {
    await this.clickOn(
      `Array.from(document.querySelectorAll("button, a, summary")).find((one) => one.textContent === ${JSON.stringify(label)} && one.offsetParent !== null && !one.disabled)`,
    );
  }

  /** Clicks the element that an expression gives. */
  async clickOn(expression: string): Promise<void> {
    const found = `(${expression} ?? null)`;
    await this.until(`${found} !== null`);
    await this.page.evaluate(`${found}.click()`);
  }

  async fill(selector: string, value: string): Promise<void> {
    await this.page.evaluate(
      `{ const field = document.querySelector(${JSON.stringify(selector)}); field.focus(); field.value = ""; field.dispatchEvent(new Event("input", { bubbles: true })); }`,
    );
    if (value !== "") await this.page.type(value);
  }

  /** Nothing went wrong in the browser, but for what may be refused. */
  hasNoFaults(allowed = /favicon/): void {
    assert.deepEqual(
      this.page.faults.filter((fault) => !allowed.test(fault)),
      [],
    );
  }
}
