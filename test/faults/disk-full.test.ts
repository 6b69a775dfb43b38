import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { fillDisk, lacksLimits, lacksMounts, limitProcess, smallDisk } from "../helpers/machine.js";
import { lacksCompiler, quotaOn } from "../helpers/quota.js";
import { codeOf, RealServer, type Reply } from "../helpers/real-server.js";

const KIB = 1024;
/** Small files, so that a few hundred KiB fill the journal; `LARGE` goes past it. */
const SIZES = ["--journal-bytes", "256KiB", "--journal-bypass-bytes", "64KiB", "--segment-bytes", "4MiB", "--tail-cache-bytes", "128KiB"];
const SMALL = 10 * KIB;
const LARGE = 300 * KIB;
const DISK_MIB = 16;

/** Takes a server's room away; what it returns gives it back. */
type Shortage = (server: RealServer) => () => void;

/** A writer with a producer: it knows what was acknowledged, and sends again what was not. */
class Writer {
  readonly stream: string;
  readonly #server: RealServer;
  readonly #acknowledged: string[] = [];
  #seq = 0;

  constructor(server: RealServer, stream: string) {
    this.#server = server;
    this.stream = stream;
  }

  /** Appends `length` bytes; what was refused comes again the next time, under the same number. */
  async append(length: number): Promise<Reply> {
    const body = `${this.stream} ${this.#seq} `.padEnd(length, "abcdefghij");
    const headers = { "Content-Type": "text/plain", "Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": String(this.#seq) };
    const reply = await this.#server.ask("POST", this.stream, { headers, body });
    assert.ok([200, 507].includes(reply.status), `${reply.status} ${reply.body}`);
    if (reply.status === 200) {
      this.#acknowledged.push(body);
      this.#seq += 1;
    }
    return reply;
  }

  /** The last acknowledged append, sent once more, is known. */
  async repeatLast(): Promise<void> {
    const headers = { "Content-Type": "text/plain", "Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": String(this.#seq - 1) };
    const { status, body } = await this.#server.ask("POST", this.stream, { headers, body: this.#acknowledged.at(-1) ?? "" });
    assert.equal(status, 204, body);
  }

  /** What is read is what was acknowledged, whole and once. */
  async check(): Promise<void> {
    let text = "";
    for (let offset = "-1"; ;) {
      const { status, body, headers } = await this.#server.ask("GET", `${this.stream}?offset=${offset}`);
      assert.equal(status, 200, body);
      text += body;
      offset = String(headers["stream-next-offset"]);
      if (headers["stream-up-to-date"] === "true") break;
    }
    assert.ok(
      text === this.#acknowledged.join(""),
      `${this.stream}: ${text.length} bytes, ${this.#acknowledged.join("").length} acknowledged`,
    );
  }
}

/** Servers of this file have the same small sizes. */
async function startOn(context: TestContext, dir?: string): Promise<RealServer> {
  const server = new RealServer(context, SIZES, dir);
  await server.start();
  return server;
}

async function createdWriter(server: RealServer, stream: string): Promise<Writer> {
  const { status, body } = await server.ask("PUT", stream, { headers: { "Content-Type": "text/plain" } });
  assert.equal(status, 201, body);
  return new Writer(server, stream);
}

function assertFull(reply: Reply): void {
  assert.equal(reply.status, 507, reply.body);
  assert.equal(codeOf(reply), "storage-full");
  assert.match(String(reply.headers["retry-after"]), /^\d+$/);
}

async function assertHealth(server: RealServer, status: number): Promise<void> {
  const health = await server.ask("GET", "/health");
  assert.equal(health.status, status, health.body);
  if (status === 503) assert.match(health.body, /disk is full/);
}

/** Appends until one is refused for lack of room. */
async function appendUntilFull(writer: Writer, length: number): Promise<void> {
  for (let count = 0; count < 1000; count += 1) {
    const reply = await writer.append(length);
    if (reply.status === 507) return assertFull(reply);
  }
  assert.fail("the disk never became full");
}

/** Resolves when the server has said `count` times that there is room again. */
async function roomAgain(server: RealServer, count: number): Promise<void> {
  await server.process.stderrLine(/there is room again/, count);
}

/** A whole shortage: refusals, reads, health, and its end without a restart. */
async function sufferShortage(server: RealServer, small: Writer, large: Writer, round: number, shortage: Shortage): Promise<void> {
  const relieve = shortage(server);
  await appendUntilFull(large, LARGE);
  await assertHealth(server, 503);
  await appendUntilFull(small, SMALL);
  assertFull(await large.append(LARGE));
  assertFull(await server.ask("PUT", `new/${round}`, { headers: { "Content-Type": "text/plain" }, body: "x".repeat(SMALL) }));
  await assertHealth(server, 503);
  await small.check();
  await large.check();
  relieve();
  await roomAgain(server, round);
  await assertHealth(server, 200);
  for (const [writer, length] of [
    [small, SMALL],
    [large, LARGE],
  ] as const) {
    assert.equal((await writer.append(length)).status, 200);
    await writer.repeatLast();
    await writer.check();
  }
  assert.equal((await server.ask("GET", `new/${round}`)).status, 404, "a refused creation has left nothing");
  await createdWriter(server, `new/${round}`);
}

/** The end of a test: stopped, verified, started again, everything is there and goes on. */
async function checkAfterRestart(server: RealServer, writers: readonly Writer[]): Promise<void> {
  assert.equal((await server.stop()).status, 0);
  await server.verify();
  await server.start();
  for (const writer of writers) {
    await writer.check();
    await writer.repeatLast();
    assert.equal((await writer.append(SMALL)).status, 200);
    await writer.check();
  }
}

const filled =
  (point: string): Shortage =>
  () =>
    fillDisk(point, 64 * KIB);
const limited: Shortage = (server) => {
  limitProcess(server.process.pid, "fsize", 4 * KIB);
  return () => limitProcess(server.process.pid, "fsize", "unlimited");
};

describe("a full disk", { skip: lacksMounts }, () => {
  test("refuses appends of any size and creations, whole; reads go on, and with room again everything does, time after time", async (context) => {
    const point = smallDisk(context, DISK_MIB);
    const server = await startOn(context, join(point, "data"));
    const writers = [await createdWriter(server, "small"), await createdWriter(server, "large")] as const;
    for (const round of [1, 2, 3]) await sufferShortage(server, ...writers, round, filled(point));
    await checkAfterRestart(server, writers);
  });

  test("with room in the journal only, takes small appends, refuses large ones, and the health says so for as long", async (context) => {
    const point = smallDisk(context, DISK_MIB);
    const server = await startOn(context, join(point, "data"));
    const [small, large] = [await createdWriter(server, "small"), await createdWriter(server, "large")];
    assert.equal((await large.append(LARGE)).status, 200);
    const relieve = fillDisk(point, 64 * KIB);
    for (let count = 0; count < 3; count += 1) {
      assertFull(await large.append(LARGE));
      await assertHealth(server, 503);
      assert.equal((await small.append(100)).status, 200);
      await assertHealth(server, 503);
    }
    relieve();
    await roomAgain(server, 1);
    await assertHealth(server, 200);
    assert.equal((await large.append(LARGE)).status, 200);
    await checkAfterRestart(server, [small, large]);
  });

  test("takes the deletion of a stream, and then everything again", async (context) => {
    const point = smallDisk(context, DISK_MIB);
    const server = await startOn(context, join(point, "data"));
    const [small, large] = [await createdWriter(server, "small"), await createdWriter(server, "large")];
    for (let count = 0; count < 4; count += 1) assert.equal((await large.append(LARGE)).status, 200);
    fillDisk(point);
    await appendUntilFull(small, SMALL);
    assert.equal((await server.ask("DELETE", "large")).status, 204);
    await roomAgain(server, 1);
    assert.equal((await small.append(SMALL)).status, 200);
    await checkAfterRestart(server, [small]);
  });

  test("that fills up by itself keeps nothing of what it refused", async (context) => {
    const point = smallDisk(context, DISK_MIB);
    const server = await startOn(context, join(point, "data"));
    const [small, large] = [await createdWriter(server, "small"), await createdWriter(server, "large")];
    await appendUntilFull(large, 3000 * KIB);
    // What was written of the refused append is given back: there is room for less.
    assert.equal((await large.append(SMALL)).status, 200);
    assert.equal((await small.append(LARGE)).status, 200);
    await checkAfterRestart(server, [small, large]);
  });

  test("lets the server end, refuses a start in one line, and takes nothing from the next", async (context) => {
    const point = smallDisk(context, DISK_MIB);
    const server = await startOn(context, join(point, "data"));
    const writers = [await createdWriter(server, "small"), await createdWriter(server, "large")];
    for (const writer of writers) assert.equal((await writer.append(LARGE)).status, 200);
    const relieve = fillDisk(point);
    for (const writer of writers) await appendUntilFull(writer, SMALL);
    const { status, stderr } = await server.stop();
    assert.equal(status, 0, stderr);
    await assert.rejects(server.start(), /the disk is full/);
    const refused = await server.process.ended;
    assert.notEqual(refused.status, 0);
    assert.match(refused.stderr, /^streamdir: the directory .* can't be used: the disk is full\n$/);
    relieve();
    await server.verify();
    await server.start();
    for (const writer of writers) {
      await writer.check();
      await writer.repeatLast();
    }
    await checkAfterRestart(server, writers);
  });
});

describe("a limit on the size of files", { skip: lacksLimits }, () => {
  test("is a full disk too: the signal it sends does not end the server", async (context) => {
    const server = await startOn(context);
    const writers = [await createdWriter(server, "small"), await createdWriter(server, "large")] as const;
    for (const round of [1, 2]) await sufferShortage(server, ...writers, round, limited);
    const status = readFileSync(`/proc/${server.process.pid}/status`, "latin1");
    assert.match(status, /SigIgn:\s*[0-9a-f]+/);
    await checkAfterRestart(server, writers);
    assert.deepEqual(readdirSync(join(server.dir, "trash")), []);
  });
});

describe("a quota that is used up", { skip: lacksCompiler }, () => {
  test("is a full disk too, by the number of its error: not every library has a name for it", async (context) => {
    const server = new RealServer(context, SIZES);
    const quota = quotaOn(server.dir);
    await server.start(quota.under);
    const writers = [await createdWriter(server, "small"), await createdWriter(server, "large")] as const;
    for (const round of [1, 2]) await sufferShortage(server, ...writers, round, () => quota.useUp());
    const raise = quota.useUp();
    for (const writer of writers) await appendUntilFull(writer, SMALL);
    const { status, stderr } = await server.stop();
    assert.equal(status, 0, stderr);
    await assert.rejects(server.start(quota.under));
    assert.match((await server.process.ended).stderr, /^streamdir: the directory .* can't be used: the disk quota is used up\n$/);
    raise();
    await server.verify();
    await server.start();
    await checkAfterRestart(server, writers);
  });
});
