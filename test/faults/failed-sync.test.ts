import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { assertExactlyOnce, HonestProducer } from "../helpers/honest-producer.js";
import { injectFaults, lacksInjection, type Injection } from "../helpers/machine.js";
import { RealServer } from "../helpers/real-server.js";

const PRODUCERS = 6;
/** Appends of each producer before the fault, and after the restart. */
const BEFORE = 10;
const AFTER = 10;
/** A small journal, so that checkpoints come all the time; every fifth append goes past it. */
const SIZES = ["--journal-bytes", "64KiB", "--journal-bypass-bytes", "8KiB", "--segment-bytes", "64KiB"];

const lengthOf = (count: number): number => (count % 5 === 4 ? 10_000 : 700);

/** What fails, and with which system call. */
const FAULTS: readonly (readonly [name: string, injection: (dir: string) => Injection])[] = [
  ["a write to the journal", (dir) => ({ calls: "pwrite64", fault: "error=EIO", path: journalIn(dir) })],
  ["a sync of anything", () => ({ calls: "fdatasync", fault: "error=EIO" })],
  ["a sync of the journal's directory", (dir) => ({ calls: "fdatasync", fault: "error=EIO", path: join(dir, "journal") })],
  ["a sync that finds no room", () => ({ calls: "fdatasync", fault: "error=ENOSPC" })],
  ["a rename", () => ({ calls: "rename,renameat,renameat2", fault: "error=EIO" })],
];

/** The journal file that is written now: the last. */
function journalIn(dir: string): string {
  const names = readdirSync(join(dir, "journal")).filter((name) => name.endsWith(".journal"));
  return join(dir, "journal", names.sort().at(-1) ?? "");
}

describe("a disk that fails under load", { skip: lacksInjection }, () => {
  for (const [name, injection] of FAULTS) {
    test(`${name}: the server exits with 74, and the next loses and doubles nothing`, async (context) => {
      const server = new RealServer(context, SIZES);
      await server.start();
      const producers = Array.from(
        { length: PRODUCERS },
        (_, index) => new HonestProducer(server, index % 2 === 0 ? "shared" : `own/${index}`, `p${index}`),
      );
      for (const stream of new Set(producers.map((producer) => producer.stream))) {
        assert.equal((await server.ask("PUT", stream, { headers: { "Content-Type": "application/json" } })).status, 201);
      }
      await appendEach(producers, () => BEFORE);
      await injectFaults(context, server.process.pid, injection(server.dir));
      // Nobody rests before the server has been started again.
      const working = appendEach(producers, () => (server.lives === 1 ? Infinity : AFTER));
      const { status, stderr } = await server.process.ended;
      assert.equal(status, 74, stderr);
      assert.match(stderr, /the disk failed: nothing is written any more/);
      assert.match(stderr, /exiting: the storage has failed/);
      await server.start();
      await working;
      await assertExactlyOnce(server, producers);
      for (const producer of producers) assert.equal(await producer.repeatLast(), 204, "producers are remembered");
      assert.equal((await server.stop()).status, 0);
      await server.verify();
    });
  }
});

/** Appends at the same time, each producer as long as it has done less than `count` says. */
async function appendEach(producers: readonly HonestProducer[], count: () => number): Promise<void> {
  await Promise.all(
    producers.map(async (producer) => {
      for (let done = 0; done < count(); done += 1) await producer.append(lengthOf(done));
    }),
  );
}
