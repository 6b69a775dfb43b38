import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { TestProcess } from "../helpers/process.js";
import { ask, codeOf } from "../helpers/real-server.js";
import { Events } from "./front-ends.js";
import { PermittedServer } from "./permitted-server.js";

const TEXT = { "Content-Type": "text/plain" };
const FORBIDDEN = / error .*may not use a subject/;
const ALLOWED = / info .*may use a subject again/;

interface Started {
  readonly server: PermittedServer;
  readonly url: string;
  readonly process: TestProcess;
}

/** A front end on servers of NATS, whose log is read. */
async function start(t: TestContext, servers = 1): Promise<Started> {
  const server = await PermittedServer.start(t, servers);
  return { server, ...(await server.serve(t)) };
}

/** The status of `/readyz`, and the reason that `/health` gives. */
async function healthOf({ url }: Started): Promise<{ readonly ready: number; readonly reason: string }> {
  const { status } = await ask(new URL("/readyz", url).href, "GET");
  const { reason = "" } = JSON.parse((await ask(new URL("/health", url).href, "GET")).body) as { reason?: string }; // as docs/api.md has it
  return { ready: status, reason };
}

/** Asks for the health until it is as it has to be: nobody tells of it. */
async function untilHealth(started: Started, ready: number, reason: RegExp): Promise<void> {
  for (let now = await healthOf(started); now.ready !== ready || !reason.test(now.reason);) now = await healthOf(started);
}

/** No word of a leader that is missing, and no other server was looked for. */
function assertNobodyBlamed({ process }: Started): void {
  assert.doesNotMatch(process.stderrText(), /no leader answers|trying another|connection to the NATS cluster is lost/);
}

/** Appends to a stream all the time; who is refused waits until the test says that it may go on. */
class Writers {
  readonly #url: string;
  /** By its text, what each append was answered with; those of producers are sent again until they are stored. */
  readonly #answers = new Map<string, string>();
  #isOver = false;
  #goOn: () => void = () => undefined;
  #mayGoOn: Promise<void> | null = null;
  readonly #all: Promise<unknown>;

  constructor(url: string) {
    this.#url = url;
    this.hold();
    const producers = [0, 1, 2].map((index) => this.#write(`p${index}`, true));
    this.#all = Promise.all([...producers, ...[0, 1, 2].map((index) => this.#write(`b${index}`, false))]);
  }

  /** From now on who is refused waits. */
  hold(): void {
    this.#mayGoOn ??= new Promise((resolve) => (this.#goOn = resolve));
  }

  goOn(): void {
    this.#goOn();
    this.#mayGoOn = null;
  }

  /** How many are stored. */
  get stored(): number {
    return [...this.#answers.values()].filter((answer) => answer === "stored").length;
  }

  async #write(id: string, isProducer: boolean): Promise<void> {
    for (let seq = 0; !this.#isOver; seq += 1) {
      const text = `${id}.${seq};`;
      const headers = { ...TEXT, "Producer-Id": id, "Producer-Epoch": "0", "Producer-Seq": String(seq) };
      for (let answer = ""; answer !== "stored";) {
        const reply = await ask(this.#url, "POST", { headers: isProducer ? headers : TEXT, body: text });
        answer = reply.status < 300 ? "stored" : codeOf(reply);
        this.#answers.set(text, answer);
        if (answer !== "stored") await this.#mayGoOn;
        if (!isProducer) break;
      }
    }
  }

  /** Ends them. What was acknowledged is there once, in its order; what was refused is not. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.goOn();
    await this.#all;
    const found = (await ask(this.#url, "GET")).body.split(/(?<=;)/);
    const allowed: Record<string, readonly number[]> = { stored: [1], overloaded: [0], "outcome-unknown": [0, 1] };
    for (const [text, answer] of this.#answers) {
      const count = found.filter((other) => other === text).length;
      assert.ok(allowed[answer]?.includes(count), `${text} was answered ${answer}, and is there ${count} times`);
    }
    for (const id of ["p0", "p1", "p2", "b0", "b1", "b2"]) {
      const places = found.filter((text) => text.startsWith(`${id}.`)).map((text) => Number(text.slice(3, -1)));
      assert.deepEqual(
        places,
        [...places].sort((left, right) => left - right),
      );
    }
  }
}

describe("a front end from which permissions are taken while it serves", () => {
  test("says that it may have no answers, stays where it is, and serves once it may, twice", { timeout: 300_000 }, async (t) => {
    const started = await start(t);
    const { server, url, process } = started;
    assert.equal((await ask(`${url}s`, "PUT", { headers: TEXT, body: "" })).status, 201);
    const writers = new Writers(`${url}s`);
    for (const time of [1, 2]) {
      await server.take('"_INBOX.>", ');
      // A list that is being read has an inbox of its own.
      assert.match(await process.stderrLine(FORBIDDEN, time), /operation=subscription subject=_INBOX\./);
      await untilHealth(started, 503, /may not do what streamdir needs: .*Subscription to "_INBOX\.\w+\.\*"/);
      const refused = await ask(`${url}t`, "PUT", { headers: TEXT, body: "" });
      assert.deepEqual([refused.status, codeOf(refused)], [503, "overloaded"]);
      // It waits for longer than another server was looked for after.
      assert.equal((await ask(`${url}s`, "HEAD")).status, 503);
      assertNobodyBlamed(started);

      const { stored } = writers;
      await server.take("");
      await process.stderrLine(ALLOWED, time);
      await untilHealth(started, 200, /^$/);
      writers.goOn();
      while (writers.stored < stored + 20) assert.equal((await ask(`${url}s`, "HEAD")).status, 200);
      writers.hold();
    }
    await writers.end();
    assertNobodyBlamed(started);
    const told = process.stderrText().match(/may not use a subject/g);
    assert.equal(told?.length, 2, process.stderrText());
  });

  for (const [what, permission, subject] of [
    ["ask for leaders", '"$JS.API.STREAM.INFO.*", ', String.raw`\$JS\.API\.STREAM\.INFO\.SD_chats_0`],
    ["read of leaders", '"$JS.API.STREAM.MSG.GET.*", ', String.raw`\$JS\.API\.STREAM\.MSG\.GET\.SD_chats_0`],
  ] as const)
    test(`says that it may not ${what}, stays where it is, and serves once it may`, { timeout: 300_000 }, async (t) => {
      const started = await start(t);
      const { server, url, process } = started;
      assert.equal((await ask(`${url}s`, "PUT", { headers: TEXT, body: "a" })).status, 201);
      await server.take(permission);
      assert.equal((await ask(`${url}s`, "POST", { headers: TEXT, body: "b" })).status, 204);
      // The one loses its right to know of a leader within a second, the other its right to read at once.
      const first = ask(`${url}s`, "GET");
      // Any of the JetStream streams may have been asked for first.
      assert.match(await process.stderrLine(FORBIDDEN), new RegExp(subject.replace("_0", "_(0|touch)")));
      await untilHealth(started, 503, new RegExp(`may not do what streamdir needs: .*Publish to "${subject}"`));
      const refused = await ask(`${url}s`, "GET");
      assert.deepEqual([refused.status, codeOf(refused)], [503, "overloaded"]);
      assertNobodyBlamed(started);

      await server.take("");
      await process.stderrLine(ALLOWED);
      await untilHealth(started, 200, /^$/);
      assert.equal((await ask(`${url}s`, "POST", { headers: TEXT, body: "c" })).status, 204);
      assert.equal((await ask(`${url}s`, "GET")).body, "abc");
      assert.ok([200, 503].includes((await first).status));
      assertNobodyBlamed(started);
    });

  for (const [what, permission, reason] of [
    ["asked for leaders", '"$JS.API.STREAM.INFO.*", ', /Publish to "\$JS\.API\.STREAM\.INFO/],
    ["sent answers", '"_INBOX.>", ', /Subscription to "_INBOX/],
  ] as const)
    test(`serves at another server where only one may not be ${what}`, { timeout: 300_000 }, async (t) => {
      const started = await start(t, 2);
      const { server, url, process } = started;
      assert.equal((await ask(`${url}s`, "PUT", { headers: TEXT, body: "a" })).status, 201);
      await server.take(permission);
      const [, refusing = ""] = /server=(\S+)/.exec(await process.stderrLine(FORBIDDEN)) ?? [];
      await untilHealth(started, 503, reason);
      // It tries the other, where it is refused the same, and says so once.
      const left = await process.stderrLine(/the NATS server refuses what streamdir needs: trying another/);
      assert.match(left, new RegExp(`server=${refusing}$`));
      const [, other = ""] = /server=(\S+)/.exec(await process.stderrLine(FORBIDDEN, 2)) ?? [];
      assert.notEqual(other, refusing);
      await untilHealth(started, 503, reason);

      await server.giveBackExcept(other);
      await untilHealth(started, 200, /^$/);
      assert.equal((await ask(`${url}s`, "POST", { headers: TEXT, body: "b" })).status, 204);
      assert.equal((await ask(`${url}s`, "GET")).body, "ab");
      assert.equal(process.stderrText().match(/trying another/g)?.length, 1, process.stderrText());
    });

  test("is ready again while appends go on, once it may read of leaders", { timeout: 300_000 }, async (t) => {
    const started = await start(t);
    const { server, url, process } = started;
    assert.equal((await ask(`${url}s`, "PUT", { headers: TEXT, body: "" })).status, 201);
    await server.take('"$JS.API.STREAM.MSG.GET.*", ');
    assert.equal((await ask(`${url}s`, "GET")).status, 503);
    await untilHealth(started, 503, /STREAM\.MSG\.GET/);
    const writers = new Writers(`${url}s`);
    await server.take("");
    await process.stderrLine(ALLOWED);
    await untilHealth(started, 200, /^$/);
    await writers.end();
  });

  test("hears of other front ends again once it may", { timeout: 300_000 }, async (t) => {
    const started = await start(t);
    const { server, url, process } = started;
    const other = await server.serve(t);
    assert.equal((await ask(`${url}followed`, "PUT", { headers: TEXT, body: "" })).status, 201);
    const follow = async (target: string): Promise<Events> => {
      const { body } = await fetch(`${url}${target}`);
      assert.ok(body !== null);
      const events = new Events(body);
      t.after(() => events.leave());
      return events;
    };
    const list = await follow("__ds/streams?live=sse");
    const followed = await follow("followed?offset=-1&live=sse");
    await Promise.all([list.until(/"resumed"/), followed.until(/event: control/)]);
    await server.take('"sdr.chats.>", "sda.chats", ');
    assert.match(await process.stderrLine(FORBIDDEN), /"?sda\.chats"?/);
    assert.equal((await ask(`${other.url}missed`, "PUT", { headers: TEXT, body: "" })).status, 201);
    assert.equal((await ask(`${other.url}followed`, "POST", { headers: TEXT, body: "missed text" })).status, 204);
    await server.take("");
    await process.stderrLine(ALLOWED);
    // The list says that it is to be read again, which it does only of a gap.
    await Promise.all([list.until(/("resumed":false[^]*){2}/), followed.until(/missed text/)]);
    assert.match((await ask(`${url}__ds/streams`, "GET")).body, /"missed"/);
    await other.process.stderrLine(ALLOWED);
    assert.equal((await ask(`${other.url}news`, "PUT", { headers: TEXT, body: "" })).status, 201);
    await list.until(/"news"/);
  });
});
