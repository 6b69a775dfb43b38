import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { hasProgram } from "../bench/rivals/rival.js";
import type { TestScope } from "./process.js";
import { tempDir } from "./temp-dir.js";

const PROGRAM = "chromium";

/** Why a test of pages has to be left out; `false` when it has not. */
export const lacksChromium: string | false = hasProgram(PROGRAM) ? false : "chromium is not installed";

interface Reply {
  readonly id?: number;
  readonly error?: { readonly message: string };
  readonly result?: Readonly<Record<string, unknown>>;
  readonly method?: string;
  readonly params?: unknown;
}

/** How a page is shown. */
export interface Screen {
  readonly width: number;
  readonly height: number;
  readonly isDark?: boolean;
  readonly isTelephone?: boolean;
}

/** A page of a browser without a window, led over the DevTools protocol. */
export class ChromiumPage {
  readonly #commands: Writable;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #session: string | undefined;
  #lastId = 0;
  /** Exceptions, and what the browser refused or complained of, since {@link watchFaults}. */
  readonly faults: string[] = [];

  private constructor(child: ChildProcess) {
    this.#commands = child.stdio[3] as Writable; // as it was spawned
    let rest = "";
    // Each message ends with a NUL.
    (child.stdio[4] as Readable).setEncoding("utf8").on("data", (text: string) => {
      const messages = (rest + text).split("\0");
      rest = messages.pop() ?? "";
      for (const message of messages) this.#receive(JSON.parse(message) as Reply);
    });
  }

  /** Starts a browser with `flags` of its own; it is ended when the test is over. */
  static async open(scope: TestScope, flags: readonly string[] = []): Promise<ChromiumPage> {
    const args = [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--remote-debugging-pipe",
      `--user-data-dir=${tempDir()}`,
      ...flags,
    ];
    // In a process group of its own, so that its helpers end with it.
    const child = spawn(PROGRAM, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], detached: true });
    const ended = once(child, "close");
    scope.after(async () => {
      process.kill(-(child.pid ?? 0), "SIGKILL");
      await ended;
    });
    const page = new ChromiumPage(child);
    const { targetId } = await page.#command("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await page.#command("Target.attachToTarget", { targetId, flatten: true });
    page.#session = String(sessionId);
    return page;
  }

  /** Goes to an address; what the page loads by itself may still be on its way. */
  async goTo(url: string): Promise<void> {
    await this.#command("Page.navigate", { url });
  }

  /** Runs a script in each page before its own. */
  async beginWith(source: string): Promise<void> {
    await this.#command("Page.enable", {});
    await this.#command("Page.addScriptToEvaluateOnNewDocument", { source });
  }

  /** Notes faults from now on. */
  async watchFaults(): Promise<void> {
    await this.#command("Runtime.enable", {});
    await this.#command("Log.enable", {});
  }

  /** Shows the page on a screen of this kind. */
  async showOn({ width, height, isDark = false, isTelephone = false }: Screen): Promise<void> {
    const metrics = { width, height, deviceScaleFactor: isTelephone ? 2 : 1, mobile: isTelephone };
    await this.#command("Emulation.setDeviceMetricsOverride", metrics);
    await this.#command("Emulation.setTouchEmulationEnabled", { enabled: isTelephone });
    const features = [{ name: "prefers-color-scheme", value: isDark ? "dark" : "light" }];
    await this.#command("Emulation.setEmulatedMedia", { features });
  }

  /** What the page looks like, as PNG. */
  async screenshot(): Promise<Buffer> {
    const { data } = await this.#command("Page.captureScreenshot", { format: "png" });
    return Buffer.from(String(data), "base64");
  }

  /** Presses a key, as a person would. */
  async press(key: string, modifiers = 0): Promise<void> {
    const text = key.length === 1 ? key : key === "Enter" ? "\r" : undefined;
    await this.#command("Input.dispatchKeyEvent", { type: "keyDown", key, code: key, modifiers, text });
    await this.#command("Input.dispatchKeyEvent", { type: "keyUp", key, code: key, modifiers });
  }

  /** Types a text where the focus is. */
  async type(text: string): Promise<void> {
    await this.#command("Input.insertText", { text });
  }

  /** Loads the page again. */
  async reload(): Promise<void> {
    // What was there before must not be taken for the new page.
    await this.evaluate("window.isOld = true");
    await this.#command("Page.reload", {});
    await this.until("window.isOld !== true && document.readyState === 'complete'");
  }

  /** The value of an expression in the page, as JSON has it. */
  async evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.#command("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails));
    return (result as { value?: unknown }).value; // as the protocol has it
  }

  /** Resolves when an expression is true in the page; the page itself looks again and again. */
  async until(condition: string): Promise<void> {
    for (;;) {
      try {
        await this.evaluate(
          `new Promise((resolve) => { (function look() { if (${condition}) resolve(); else setTimeout(look, 20); })(); })`,
        );
        return;
      } catch (fault) {
        // The page that was looked at is gone, and another is on its way.
        if (!(fault instanceof Error && /navigated|destroyed|Cannot find context/.test(fault.message))) throw fault;
      }
    }
  }

  async #command(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    const id = ++this.#lastId;
    const reply = new Promise<Reply>((resolve) => this.#waiting.set(id, resolve));
    this.#commands.write(`${JSON.stringify({ id, method, params, sessionId: this.#session })}\0`);
    const { error, result = {} } = await reply;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  #receive(reply: Reply): void {
    const { id, method, params } = reply;
    if (method === "Runtime.exceptionThrown" || method === "Log.entryAdded") this.faults.push(JSON.stringify(params));
    if (id === undefined) return;
    this.#waiting.get(id)?.(reply);
    this.#waiting.delete(id);
  }
}
