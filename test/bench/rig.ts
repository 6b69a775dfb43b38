import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startNode, type TestScope } from "../helpers/process.js";
import { median } from "../scale/load.js";
import { NODE_FLAGS, pause, ServerUnderLoad } from "../scale/server-under-load.js";
import { openDialogue } from "./connection.js";
import { fieldOf, HttpAnswers } from "./http-answers.js";
import type { LoadOrder, LoadReport } from "./load-process.js";
import type { MixedOrder, MixedReport } from "./mixed-process.js";
import type { RivalFigure } from "./question.js";
import type { ReadersOrder, ReadersReport } from "./readers-process.js";
import type { RoundTripOrder, RoundTripReport } from "./round-trip-process.js";
import type { SecureOrder, SecureReport } from "./secure-load-process.js";
import type { SecureYardstickOrder } from "./secure-yardstick.js";
import { bodyOf, requestOf, type RequestShape, type Traffic } from "./traffic.js";
import { isForWrk, loadByWrk } from "./wrk.js";
import type { Answer, Answers } from "./yardstick.js";

const TSX = import.meta.resolve("tsx");

/** A pair is measured in turns of about this, so that a machine that is slow for some seconds is so for both. */
const TURN_MS = 1000;
/** What the load needs to be warm where the server is. */
const WARM_AGAIN_MS = 300;

/** How much is measured. */
export interface Effort {
  readonly pairs: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Only tries: what is large is made small. */
  readonly isQuick: boolean;
}

/** A bare server. */
export interface Bare {
  readonly port: number;
  stop(): Promise<void>;
}

/** Ours and the yardstick's, and the median of the pairs' ratios. */
export interface Compared {
  readonly ours: number;
  readonly yardstick: number;
  readonly ratio: number;
  readonly rivals: readonly RivalFigure[];
}

/** What the questions are asked with: servers, loads and directories, all gone when it is over. */
export class Rig implements TestScope {
  readonly effort: Effort;
  /** Told of each step. */
  readonly progress: (step: string) => void;
  readonly #root = mkdtempSync(join(tmpdir(), "streamdir-bench-"));
  readonly #cleanups: (() => Promise<void>)[] = [];
  #directories = 0;

  constructor(effort: Effort, progress: (step: string) => void) {
    this.effort = effort;
    this.progress = progress;
  }

  after(run: () => Promise<void>): void {
    this.#cleanups.push(run);
  }

  /** A directory of its own, on the disk that is measured. */
  directory(): string {
    return join(this.#root, String((this.#directories += 1)));
  }

  /** How many, or how much: `full`, or `quick` where it is only tried. */
  size(full: number, quick: number): number {
    return this.effort.isQuick ? quick : full;
  }

  /** The built server, with `args` added to its command line. */
  server(...args: string[]): Promise<ServerUnderLoad> {
    return ServerUnderLoad.start(this, this.directory(), ["--log-level", "error", ...args]);
  }

  /** The same with a probe in it that tells the memory in use. */
  probedServer(...args: string[]): Promise<ServerUnderLoad> {
    return ServerUnderLoad.startProbed(this, this.directory(), ["--log-level", "error", ...args]);
  }

  /** Starts the yardstick; resolves with its port. */
  async yardstick(answers: Answers): Promise<number> {
    const started = this.#script("yardstick.ts", answers, NODE_FLAGS);
    return Number((await started.stdoutLine(/^port/)).slice(5));
  }

  /** Makes load from a process of its own. */
  load(order: LoadOrder): Promise<LoadReport> {
    if (isForWrk(order)) return loadByWrk(this, this.directory(), order);
    return this.#report<LoadReport>("load-process.ts", order);
  }

  /** Follows a stream many times, from a process of its own. */
  readers(order: ReadersOrder): Promise<ReadersReport> {
    return this.#report<ReadersReport>("readers-process.ts", order);
  }

  /** Appends and waits for it to arrive, from a process of its own. */
  roundTrips(order: RoundTripOrder): Promise<RoundTripReport> {
    return this.#report<RoundTripReport>("round-trip-process.ts", order);
  }

  /** Follows many streams and appends to them, from a process of its own. */
  mixed(order: MixedOrder): Promise<MixedReport> {
    return this.#report<MixedReport>("mixed-process.ts", order);
  }

  /** What a process of this folder prints when it is done. */
  async #report<T>(file: string, order: unknown): Promise<T> {
    const { status, stdout, stderr } = await this.#script(file, order).ended;
    if (status !== 0) throw new Error(`${file} ended with ${status}: ${stderr}`);
    return JSON.parse(stdout) as T; // it prints nothing else
  }

  /** Appends and follows over TLS, from a process of its own. */
  secureLoad(order: SecureOrder): Promise<SecureReport> {
    return this.#report<SecureReport>("secure-load-process.ts", order);
  }

  /** Starts the yardstick of live reads. */
  fanOutYardstick(): Promise<Bare> {
    return this.#bare("fan-out-yardstick.ts", null);
  }

  /** Starts the yardstick of what goes over TLS. */
  secureYardstick(order: SecureYardstickOrder): Promise<Bare> {
    return this.#bare("secure-yardstick.ts", order);
  }

  async #bare(file: string, argument: unknown): Promise<Bare> {
    const started = this.#script(file, argument, NODE_FLAGS);
    const port = Number((await started.stdoutLine(/^port/)).slice(5));
    const stop = async (): Promise<void> => {
      started.kill("SIGKILL");
      await started.ended;
    };
    return { port, stop };
  }

  #script(file: string, argument: unknown, flags: readonly string[] = []): ReturnType<typeof startNode> {
    return startNode(this, [...flags, "--import", TSX, fileURLToPath(new URL(file, import.meta.url)), JSON.stringify(argument)]);
  }

  /** Puts the same load on ours, on the yardstick and on the rivals in turn; `valueOf` says what counts. */
  async compare(
    { ours, yardstick, yardstickTraffic, rivals = [] }: Ports,
    traffic: (round: number) => Traffic,
    connections: number,
    valueOf: (report: LoadReport) => number,
    { pairs, warmUpMs, measureMs } = this.effort,
  ): Promise<Compared> {
    const bare = yardstickTraffic === undefined ? {} : { traffic: yardstickTraffic };
    const sides = [{ name: "ours", port: ours }, { name: "the yardstick", port: yardstick, ...bare }, ...rivals].map(
      (side: Opponent, index) => ({ ...side, isRival: index >= 2, values: [] as number[] }),
    );
    const turns = Math.max(1, Math.round(measureMs / TURN_MS));
    for (let pair = 0; pair < pairs; pair += 1) {
      const figures = new Map(sides.map((side) => [side, [] as number[]]));
      for (let turn = 0; turn < turns; turn += 1) {
        const round = pair * turns + turn;
        // Who is first takes turns too.
        for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
          this.progress(`pair ${pair + 1} of ${pairs}, ${side.name}`);
          const order = {
            port: side.port,
            connections,
            traffic: side.traffic ?? traffic(round),
            warmUpMs: turn === 0 ? warmUpMs : Math.min(warmUpMs, WARM_AGAIN_MS),
            measureMs: measureMs / turns,
          };
          const report = await this.#loadSide(side, order);
          if (report !== null) figures.get(side)?.push(valueOf(report));
        }
      }
      for (const [side, ofPair] of figures) if (ofPair.length > 0) side.values.push(mean(ofPair));
    }
    const [own = [], bareValues = [], ...others] = sides.map(({ values }) => values);
    return {
      ours: median(own),
      yardstick: median(bareValues),
      ratio: median(own.map((value, pair) => value / (bareValues[pair] ?? NaN))),
      rivals: others
        .map((values, index) => ({ name: rivals[index]?.name ?? "", value: median(values) }))
        .filter(({ value }) => !Number.isNaN(value)),
    };
  }

  /**
   * The medians of as many turns, each a pair between servers that `compareOnce` has started: what a start happens to be
   * like, one or two per cent, counts once.
   */
  async compareStarts(compareOnce: (effort: Effort, start: number) => Promise<Compared>): Promise<Compared> {
    const { pairs, measureMs } = this.effort;
    const turnMs = Math.min(TURN_MS, measureMs);
    const results: Compared[] = [];
    for (let start = 0; start < pairs * Math.max(1, Math.round(measureMs / turnMs)); start += 1)
      results.push(await compareOnce({ ...this.effort, pairs: 1, measureMs: turnMs }, start));
    return {
      ours: median(results.map(({ ours }) => ours)),
      yardstick: median(results.map(({ yardstick }) => yardstick)),
      ratio: median(results.map(({ ratio }) => ratio)),
      rivals: [],
    };
  }

  /** What another server can't do is no reason to lose what was measured of ours: then `null`. */
  async #loadSide({ name, isRival }: { readonly name: string; readonly isRival: boolean }, order: LoadOrder): Promise<LoadReport | null> {
    try {
      const report = await this.load(order);
      const bad = Object.keys(report.refusals);
      if (bad.length > 0) throw new Error(`answers of ${name} with status ${bad.join(", ")}`);
      return report;
    } catch (error) {
      if (!isRival) throw error;
      console.error(`${name} failed: ${String(error)}`);
      return null;
    }
  }

  /** Ends all processes and removes all directories. */
  async end(): Promise<void> {
    for (const run of this.#cleanups.splice(0)) await run();
    rmSync(this.#root, { recursive: true, force: true });
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Where the servers of a comparison listen. */
export interface Ports {
  readonly ours: number;
  readonly yardstick: number;
  /** What the yardstick is asked; without, the same as ours. */
  readonly yardstickTraffic?: Traffic;
  readonly rivals?: readonly Opponent[];
}

/** A rival that listens. */
export interface Opponent {
  readonly name: string;
  readonly port: number;
  /** What it is asked in its own words; without, the same as ours. */
  readonly traffic?: Traffic;
}

/** Of a request that is too much for the server at the time. */
const MAX_TRIES = 60;

/** The offset of a stream's first byte. */
export const START = "0000000000000000_0000000000000000";

/** Connections of what is sent to set a question up. */
const ASKED_AT_ONCE = 8;

/** Headers that node:http adds by itself. */
const OWN_HEADERS = /^(date|connection|keep-alive|transfer-encoding)$/i;

/** Asks once, and takes down the answer for the yardstick. */
export function ask(port: number, shape: RequestShape): Promise<Answer> {
  const { method, path, headers } = shape;
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, host: "127.0.0.1", method, path, headers, agent: false }, (response) => {
      let received = 0;
      response.on("data", (chunk: Buffer) => (received += chunk.length));
      response.on("end", () => {
        const pairs = response.rawHeaders.flatMap((name, at) =>
          at % 2 === 0 && !OWN_HEADERS.test(name) ? [name, response.rawHeaders[at + 1] ?? ""] : [],
        );
        resolve({ status: response.statusCode ?? 0, headers: pairs, bodyBytes: received });
      });
    });
    request.on("error", reject);
    request.end(bodyOf(shape));
  });
}

/** Sends each of `phases`' requests once, some at a time, those of a phase when all before are answered; throws when one is refused. */
export async function askEach(port: number, ...phases: readonly (readonly RequestShape[])[]): Promise<void> {
  for (const requests of phases) await askTimes(port, requests.length, (index) => requestOf(requests[index] ?? readOf("/")));
}

/**
 * The same of `times` requests that `bytesOf` makes, in one phase, so many at once; what is too much at the time (503) is sent again, as
 * its answer asks for.
 */
export async function askTimes(port: number, times: number, bytesOf: (index: number) => Buffer, atOnce = ASKED_AT_ONCE): Promise<void> {
  let next = 0;
  const asking = Array.from({ length: atOnce }, async () => {
    const { ask, close } = await openDialogue(port, new HttpAnswers());
    while (next < times) {
      const request = bytesOf(next++);
      let { status, head } = await ask(request);
      for (let tries = 0; status === 503 && tries < MAX_TRIES; tries += 1) {
        await pause(Number(fieldOf(head, "retry-after") ?? 1) * 1000);
        ({ status, head } = await ask(request));
      }
      if (status >= 300) throw new Error(`what sets a question up was answered:\n${head}`);
    }
    close();
  });
  await Promise.all(asking);
}

/** A field of an answer, by its name in lower case; "" where it is not there. */
export function headerOf({ headers }: Answer, name: string): string {
  const at = headers.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name);
  return at === -1 ? "" : (headers[at + 1] ?? "");
}

/** A POST of `body`, or of so many bytes. */
export function appendTo(path: string, body: string | number, headers: Readonly<Record<string, string>> = {}): RequestShape {
  return { method: "POST", path, headers: { "Content-Type": "text/plain", ...headers }, body };
}

/** Makes a text stream. */
export function creationOf(path: string, headers: Readonly<Record<string, string>> = {}): RequestShape {
  return { method: "PUT", path, headers: { "Content-Type": "text/plain", ...headers }, body: 0 };
}

/** A GET without conditions. */
export function readOf(path: string, headers: Readonly<Record<string, string>> = {}): RequestShape {
  return { method: "GET", path, headers, body: 0 };
}
