import assert from "node:assert/strict";
import { once } from "node:events";
import { before, describe, test } from "node:test";
import { ChromiumPage, lacksChromium } from "../helpers/chromium.js";
import { startStreamdir, type TestProcess, type TestScope } from "../helpers/process.js";
import { ask, type Reply } from "../helpers/real-server.js";
import { lacksNginx } from "../proxies/nginx.js";
import { DocumentedCluster } from "./documented-cluster.js";

/** Generous: machines that test are slow, and a cluster is without a leader for some seconds. */
const DEADLINE_MS = 480_000;
const LINES = 100;
const TEXT = { "Content-Type": "text/plain" };

/** Appends line after line through nginx, as `streamdir append` does it: each is a change of its own. */
class Producer {
  readonly #process: TestProcess;

  constructor(scope: TestScope, url: string, name: string) {
    this.#process = startStreamdir(scope, ["append", name, "--lines", "--server", url], { hasInput: true });
  }

  write(line: string): void {
    this.#process.stdin?.write(`${line}\n`);
  }

  async end(): Promise<void> {
    this.#process.stdin?.end();
    const { status, stderr } = await this.#process.ended;
    assert.equal(status, 0, stderr);
  }
}

/** Waits until the page shows a message; says what it shows when that takes too long. */
async function shows(page: ChromiumPage, message: string): Promise<void> {
  const isLate = once(AbortSignal.timeout(DEADLINE_MS / 4), "abort").then(() => true);
  const isShown = page.until(`document.querySelector(".rows").innerText.includes(${JSON.stringify(message)})`).then(() => false);
  if (await Promise.race([isLate, isShown])) assert.fail(String(await page.evaluate("document.body.innerText")));
}

describe("the example of docs/cluster.md", { skip: lacksNginx, timeout: DEADLINE_MS }, () => {
  let cluster: DocumentedCluster;
  const ends: (() => Promise<void>)[] = [];
  before(async () => {
    cluster = await DocumentedCluster.start({ after: (run) => void ends.push(run) });
  });
  test.after(async () => {
    for (const end of ends) await end();
  });

  test("readers at both front ends miss nothing and see nothing twice while the leader is killed under a producer", async (context) => {
    const name = "tailed/1";
    const created = await ask(`${cluster.nginx.url}${name}`, "PUT", { headers: TEXT });
    assert.equal(created.status, 201, created.body);
    const readers = cluster.frontEnds.map(({ url }) => startStreamdir(context, ["tail", name, "-f", "--from", "-1", "--server", url]));
    const producer = new Producer(context, cluster.nginx.url, name);
    const lines = Array.from({ length: LINES }, (_, at) => `line ${at}`);
    const leader = await cluster.leaderOf(name);
    for (const [at, line] of lines.entries()) {
      if (at === LINES / 2) await cluster.kill(leader);
      producer.write(line);
      await Promise.all(readers.map((reader) => reader.stdoutLine(new RegExp(`^${line}$`))));
    }
    await producer.end();
    await cluster.startAgain(leader);
    for (const reader of readers) {
      reader.kill("SIGTERM");
      const { stdout } = await reader.ended;
      assert.equal(stdout, lines.map((line) => `${line}\n`).join(""));
    }
  });

  test(
    "the page at one front end shows all that a producer appends at the other while the leader is killed",
    { skip: lacksChromium },
    async (context) => {
      const name = "tailed/2";
      const [here = "", there = ""] = cluster.frontEnds.map(({ url }) => url);
      assert.equal((await ask(`${here}${name}`, "PUT", { headers: TEXT })).status, 201);
      const page = await ChromiumPage.open(context);
      await page.goTo(`${there}__ds/ui/#/s/${name}`);
      await page.until("(document.querySelector('.status')?.textContent ?? '').includes('live')");
      const producer = new Producer(context, here, name);
      const leader = await cluster.leaderOf(name);
      const expected = Array.from({ length: 20 }, (_, at) => `message ${at}`);
      for (const [at, line] of expected.entries()) {
        if (at === expected.length / 2) await cluster.kill(leader);
        producer.write(line);
        await shows(page, line);
      }
      await producer.end();
      const shown = String(await page.evaluate("document.querySelector('.rows').innerText"));
      const messages = [...shown.matchAll(/message \d+/g)].map(([message]) => message);
      assert.deepEqual(messages.reverse(), expected);
      await cluster.startAgain(leader);
    },
  );

  test("one front end has all appends of a stream, and the other takes them over when it is killed", async () => {
    const { nginx } = cluster;
    const append = (body: string): Promise<Reply> => ask(`${nginx.url}handed`, "POST", { headers: TEXT, body });
    // The leader was killed before this: 503 says to ask again while there is none.
    const create = (): Promise<Reply> => ask(`${nginx.url}handed`, "PUT", { headers: TEXT });
    let created = await create();
    while (created.status === 503) created = await create();
    assert.ok(created.status === 201 || created.status === 200, String(created.status));
    const mustAppend = async (body: string): Promise<void> => {
      const reply = await append(body);
      assert.equal(reply.status, 204, `${body}: ${reply.status} ${reply.body}`);
    };
    for (const body of ["a", "b", "c"]) await mustAppend(body);
    const served = [...nginx.accessLog().matchAll(/"(?:PUT|POST) \/v1\/stream\/handed .* 127\.0\.0\.1:(\d+) 20\d "/g)].map(
      ([, port]) => port,
    );
    // The last line may not be written yet.
    const [port] = served;
    assert.ok(served.length > 2 && served.every((one) => one === port), served.join());
    const frontEnd = cluster.frontEnds.find(({ url }) => url.includes(`:${port}/`));
    frontEnd?.process.kill("SIGKILL");
    await frontEnd?.process.ended;
    for (const body of ["d", "e"]) await mustAppend(body);
    assert.equal((await ask(`${nginx.url}handed?offset=-1`, "GET")).body, "abcde");
  });
});
