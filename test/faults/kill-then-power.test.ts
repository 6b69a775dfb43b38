import assert from "node:assert/strict";
import { test } from "node:test";
import { appendByName } from "../helpers/append.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { SimulatedDisk } from "../helpers/simulated-disk.js";
import type { Stream } from "../../src/stream/loaded/stream.js";
import { KEEP_ALL } from "../../src/stream/loaded/retention.js";
import { RunningProcess } from "./running-process.js";

const SETTINGS = {
  segmentBytes: 300,
  journalBytes: 4096,
  journalBypassBytes: 200,
  tailCacheBytes: 500,
  maxLoadedStreams: 2,
  maxLoadedProducers: 1000,
  ttlMode: "sliding",
  retention: KEEP_ALL,
} as const;
const CREATE = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, closed: false, fork: null, body: Buffer.alloc(0) };
/** More than a history of this test has, so that each of its moments is hit. */
const MOMENTS = 160;

function start(disk: SimulatedDisk): RunningProcess {
  return new RunningProcess(disk.mount(), SETTINGS, new ManualClock(), null);
}

/** Creates a stream and appends to it until the process is killed after `events` more events of the disk. */
async function workUntilKilled(disk: SimulatedDisk, process: RunningProcess, events: number): Promise<void> {
  const killed = new Promise<void>((resolve) => disk.crashAfter(events, "kill", resolve));
  const work = async (): Promise<void> => {
    await process.registry.create("a", CREATE);
    for (const length of [10, 250, 20, 250]) {
      await appendByName(process.registry, "a", {
        contentType: "text/plain",
        body: Buffer.alloc(length, "x"),
        closes: false,
        producer: null,
        seq: null,
        ifMatch: null,
      });
    }
  };
  await Promise.race([killed, work()]);
  disk.crash("kill");
}

/** How much of the stream a reader is shown; -1 when there is none. */
async function shown(process: RunningProcess): Promise<number> {
  await process.open();
  const found = await process.registry.find("a");
  return "code" in found ? -1 : readAll(found);
}

async function readAll(stream: Stream): Promise<number> {
  let at = 0;
  while (at < stream.tail) at = (await stream.read(at, 1000)).to;
  return at;
}

test("what is shown after a kill is there after the power cut that follows, at whatever moment the kill came", async () => {
  for (let events = 1; events <= MOMENTS; events += 1) {
    const disk = new SimulatedDisk(events);
    const first = start(disk);
    await first.open();
    await workUntilKilled(disk, first, events);
    const before = await shown(start(disk));
    disk.crash("power");
    const after = await shown(start(disk));
    assert.equal(after, before, `killed after ${events} events`);
  }
});
