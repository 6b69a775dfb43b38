import { setMaxListeners } from "node:events";
import http from "node:http";
import { systemClock } from "../../src/ops/clock.js";
import type { Random } from "../helpers/random.js";
import { pause } from "../scale/server-under-load.js";
import { Latencies } from "./latencies.js";

/** How many a second there are of each, and how many of each stay. */
const APPENDS = 300;
const READS = 40;
const SHORT_LIVES = 4;
const FORKS = 2;
const LONG_STREAMS = 150;
const EVENT_READERS = 60;
const LONG_POLLS = 40;
/** How much may be under way of one kind; what would be more is left out, and counted. */
const MAX_UNDER_WAY = 200;
const FOLLOW_MS = [20_000, 90_000] as const;
const FORK_LIFE_MS = [2000, 20_000] as const;
const TEXT = { "Content-Type": "text/plain" };

interface Answer {
  readonly status: number;
  readonly nextOffset: string;
}

/** Clients of all kinds, at rates that leave the machine some time: what grows does not do so for want of it. */
export class Crowd {
  /** Of the appends since they were last taken. */
  #latencies = new Latencies();
  /** How often what was answered, and what went wrong. */
  readonly told = new Map<string, number>();
  readonly #base: string;
  readonly #random: Random;
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 128 });
  readonly #isOver: AbortController = new AbortController();
  readonly #clock = systemClock();
  #lives = 0;

  constructor(port: number, random: Random) {
    this.#base = `http://127.0.0.1:${port}/v1/stream/`;
    this.#random = random;
    // Whoever waits hears of the end.
    setMaxListeners(0, this.#isOver.signal);
  }

  /** Works until {@link stop}. */
  async run(): Promise<void> {
    for (let at = 0; at < LONG_STREAMS; at += 1) await this.#ask("PUT", this.#long(at), TEXT);
    const followers = [...this.#each(EVENT_READERS, () => this.#follow()), ...this.#each(LONG_POLLS, () => this.#poll())];
    await Promise.all([
      this.#paced(APPENDS, () => this.#append()),
      this.#paced(READS, () => this.#read()),
      this.#paced(SHORT_LIVES, () => this.#shortLife()),
      this.#paced(FORKS, () => this.#fork()),
      ...followers,
    ]);
    this.#agent.destroy();
  }

  stop(): void {
    this.#isOver.abort();
  }

  /** The latencies of the appends since the last call. */
  taken(): Latencies {
    const taken = this.#latencies;
    this.#latencies = new Latencies();
    return taken;
  }

  #long(at = this.#random.integer(0, LONG_STREAMS - 1)): string {
    return `long/${at}`;
  }

  #each(count: number, run: () => Promise<void>): Promise<void>[] {
    return Array.from({ length: count }, run);
  }

  async #append(): Promise<void> {
    const sentMs = performance.now();
    const body = "x".repeat(this.#random.chance(0.01) ? 20_000 : this.#random.integer(20, 1000));
    await this.#ask("POST", this.#long(), TEXT, body);
    this.#latencies.add(performance.now() - sentMs);
  }

  async #read(): Promise<void> {
    const { nextOffset } = await this.#ask("GET", `${this.#long()}?offset=-1`);
    if (nextOffset !== "" && this.#random.chance(0.3)) await this.#ask("GET", `${this.#long()}?offset=now`);
  }

  /** A stream that is closed, deleted, or left to expire. */
  async #shortLife(): Promise<void> {
    const name = `short/${(this.#lives += 1)}`;
    await this.#ask("PUT", name, { ...TEXT, "Stream-TTL": "30" });
    for (let append = 0; append < 5; append += 1) await this.#ask("POST", name, TEXT, "a line of a job's log\n");
    if (this.#random.chance(0.4)) await this.#ask("POST", name, { ...TEXT, "Stream-Closed": "true" });
    else if (this.#random.chance(0.5)) await this.#ask("DELETE", name);
  }

  /** A fork of a stream that goes on, which is deleted after a while. */
  async #fork(): Promise<void> {
    const source = this.#long();
    const name = `fork/${(this.#lives += 1)}`;
    const { status } = await this.#ask("PUT", name, { ...TEXT, "Stream-Forked-From": `/v1/stream/${source}`, "Stream-TTL": "60" });
    if (status >= 300) return;
    await this.#ask("POST", name, TEXT, "another way on\n");
    await this.#wait(this.#random.integer(...FORK_LIFE_MS));
    await this.#ask("DELETE", name);
  }

  /** Follows by Server-Sent Events for a while, breaks off, and begins again elsewhere. */
  async #follow(): Promise<void> {
    while (!this.#isOver.signal.aborted) {
      const request = http.get(`${this.#base}${this.#long()}?live=sse&offset=now`, { agent: false });
      const ended = new Promise<string>((resolve) => {
        request.on("response", (response) => {
          response.on("data", () => undefined).on("close", () => resolve(`events ${response.statusCode}`));
        });
        request.on("error", (error) => resolve(`events ${error.message}`));
      });
      await Promise.race([ended, this.#wait(this.#random.integer(...FOLLOW_MS))]);
      request.destroy();
      this.#tell(await ended);
    }
  }

  async #poll(): Promise<void> {
    const name = this.#long();
    let offset = "now";
    while (!this.#isOver.signal.aborted) {
      const { nextOffset } = await this.#ask("GET", `${name}?live=long-poll&offset=${offset}`);
      offset = nextOffset === "" ? "now" : nextOffset;
    }
  }

  /** Begins `run` so many times a second. */
  async #paced(perSecond: number, run: () => Promise<void>): Promise<void> {
    let underWay = 0;
    const startedMs = performance.now();
    for (let begun = 0; !this.#isOver.signal.aborted;) {
      const due = Math.floor(((performance.now() - startedMs) * perSecond) / 1000);
      for (; begun < due; begun += 1) {
        if (underWay >= MAX_UNDER_WAY) {
          this.#tell("left out");
          continue;
        }
        underWay += 1;
        void run().finally(() => (underWay -= 1));
      }
      await this.#wait(10);
    }
    while (underWay > 0) await pause(10);
  }

  /** Time passes, or all is over. */
  #wait(ms: number): Promise<void> {
    const { signal } = this.#isOver;
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const over = (): void => {
        signal.removeEventListener("abort", over);
        timer.cancel();
        resolve();
      };
      const timer = this.#clock.after(ms, over);
      signal.addEventListener("abort", over);
    });
  }

  #ask(method: string, target: string, headers: Record<string, string> = {}, body = ""): Promise<Answer> {
    return new Promise((resolve) => {
      const request = http.request(this.#base + target, { method, headers, agent: this.#agent, timeout: 60_000 }, (response) => {
        response.on("data", () => undefined);
        response.on("close", () => {
          const status = response.statusCode ?? 0;
          this.#tell(`${method} ${status}`);
          resolve({ status, nextOffset: String(response.headers["stream-next-offset"] ?? "") });
        });
      });
      request.on("timeout", () => request.destroy(new Error("no answer in a minute")));
      request.on("error", (error) => {
        this.#tell(`${method} ${error.message}`);
        resolve({ status: 0, nextOffset: "" });
      });
      request.end(body);
    });
  }

  #tell(what: string): void {
    this.told.set(what, (this.told.get(what) ?? 0) + 1);
  }
}
