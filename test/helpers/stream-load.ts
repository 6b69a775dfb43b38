import assert from "node:assert/strict";
import type { Random } from "./random.js";
import type { Reply, RealServer } from "./real-server.js";

const TYPE = { "Content-Type": "text/plain" };

/** One life of a stream, as its only client knows it. */
interface Life {
  /** All that was sent, in order; of a fork, its source's first. */
  text: string;
  /** Where the stream may end: after what was acknowledged, or after what was sent since. */
  acknowledged: number;
  isDeleted: boolean;
  isClosed: boolean;
}

/** A stream that was acknowledged: its lives from then on, as they come; the first has at least so many bytes. */
interface Wanted {
  readonly lives: readonly Life[];
  readonly from: number;
  readonly atLeast: number;
}

/** What was acknowledged at a moment. */
export class Ledger {
  readonly #wanted: ReadonlyMap<string, Wanted>;

  constructor(wanted: ReadonlyMap<string, Wanted>) {
    this.#wanted = wanted;
  }

  get size(): number {
    return this.#wanted.size;
  }

  /** Fails unless a server has all of it, and nothing that was never sent. */
  async assertIn(server: RealServer): Promise<void> {
    for (const [name, wanted] of this.#wanted) assertIs(name, wanted, await server.ask("GET", `${name}?offset=-1`));
  }
}

function assertIs(name: string, { lives, from, atLeast }: Wanted, { status, body }: Reply): void {
  if (status === 404 || status === 410) return assert.ok(lives[from]?.isDeleted === true, `${name} is lost: ${body}`);
  assert.equal(status, 200, `${name}: ${body.slice(0, 300)}`);
  // Retention may have dropped the beginning, so what is there is some of what was sent, with an end that is far enough.
  const isThere = lives.slice(from).some(({ text }, later) => {
    const at = text.lastIndexOf(body);
    return at >= 0 && at + body.length >= (later === 0 ? atLeast : 0);
  });
  assert.ok(isThere, `${name} has ${body.length} bytes, not what was acknowledged, which are ${atLeast}`);
}

/** Clients that create, append, close, fork and delete until they are stopped; each has streams of its own. */
export class StreamLoad {
  readonly #server: RealServer;
  readonly #random: Random;
  readonly #prefix: string;
  readonly #lives = new Map<string, Life[]>();
  #isOver = false;
  #count = 0;
  #clients: Promise<unknown> = Promise.resolve();
  #awaited: { readonly count: number; readonly reached: () => void } | null = null;

  /** `prefix` begins the names of its streams. */
  constructor(server: RealServer, random: Random, prefix = "load") {
    this.#server = server;
    this.#random = random;
    this.#prefix = prefix;
  }

  /** How many changes were acknowledged. */
  get count(): number {
    return this.#count;
  }

  /** Resolves when so many more changes are acknowledged. */
  more(changes: number): Promise<void> {
    const count = this.#count + changes;
    return new Promise((resolve) => (this.#awaited = { count, reached: resolve }));
  }

  /** Begins; `stop` ends it. */
  start(clients: number, namesOfEach: number): void {
    const work = Array.from({ length: clients }, (_, client) =>
      this.#client(Array.from({ length: namesOfEach }, (_name, index) => `${this.#prefix}/c${client}/s${index}`)),
    );
    this.#clients = Promise.all(work);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#clients;
  }

  /** What is acknowledged by now; what comes after it may be there too. */
  ledger(): Ledger {
    const wanted = new Map<string, Wanted>();
    for (const [name, lives] of this.#lives) {
      const now = lives.at(-1);
      if (now === undefined || now.isDeleted || now.acknowledged < 0) continue;
      wanted.set(name, { lives, from: lives.length - 1, atLeast: now.acknowledged });
    }
    return new Ledger(wanted);
  }

  async #client(names: readonly string[]): Promise<void> {
    while (!this.#isOver) {
      const name = this.#random.pick(names);
      try {
        await this.#change(name, names);
      } catch (error) {
        // The server was killed: what was under way may be there or not.
        if (!(error instanceof Error) || error instanceof assert.AssertionError) throw error;
        this.#isOver = true;
      }
    }
  }

  async #change(name: string, names: readonly string[]): Promise<void> {
    const lives = this.#lives.get(name) ?? [];
    this.#lives.set(name, lives);
    const life = lives.at(-1);
    if (life === undefined || life.isDeleted) return this.#create(name, lives, names);
    const deed = this.#random.weighted([
      [60, "append"],
      [6, "large"],
      [3, "close"],
      [4, "delete"],
    ] as const);
    if (deed === "delete") {
      life.isDeleted = true;
      return this.#done(await this.#server.ask("DELETE", name), [204]);
    }
    if (life.isClosed) return;
    if (deed === "close") {
      life.isClosed = true;
      return this.#done(await this.#server.ask("POST", name, { headers: { ...TYPE, "Stream-Closed": "true" } }), [200, 204]);
    }
    const body = this.#text(name, deed === "large" ? this.#random.integer(8192, 40_000) : this.#random.integer(20, 2000));
    life.text += body;
    const end = life.text.length;
    this.#done(await this.#server.ask("POST", name, { headers: TYPE, body }), [200, 204]);
    life.acknowledged = end;
  }

  async #create(name: string, lives: Life[], names: readonly string[]): Promise<void> {
    const source = this.#random.chance(0.3) ? this.#random.pick(names) : name;
    const from = this.#lives.get(source)?.at(-1);
    const isFork = source !== name && from !== undefined && !from.isDeleted;
    const body = this.#text(name, this.#random.chance(0.1) ? 20_000 : 50);
    const life = { text: isFork ? from.text + body : body, acknowledged: -1, isDeleted: false, isClosed: false };
    lives.push(life);
    const headers = isFork ? { ...TYPE, "Stream-Forked-From": `/v1/stream/${source}` } : TYPE;
    const reply = await this.#server.ask("PUT", name, { headers, body });
    // The name is kept for the forks of the one before, or the source's beginning is dropped just now.
    this.#done(reply, isFork ? [201, 409, 410, 503] : [201, 409]);
    if (reply.status === 201) life.acknowledged = life.text.length;
    else lives.pop();
  }

  #done({ status, body }: Reply, expected: readonly number[]): void {
    assert.ok(expected.includes(status), `${status}: ${body}`);
    this.#count += 1;
    if (this.#awaited !== null && this.#count >= this.#awaited.count) this.#awaited.reached();
  }

  /** No two of them are alike. */
  #text(name: string, length: number): string {
    return `${name} ${this.#count} ${this.#random.next()} `.repeat(Math.ceil(length / 20)).slice(0, length - 1) + "\n";
  }
}
