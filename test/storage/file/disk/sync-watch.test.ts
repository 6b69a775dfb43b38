import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SyncWatch } from "../../../../src/storage/file/disk/sync-watch.js";
import { keptLog, type LogLine } from "../../../helpers/engine.js";
import { ManualClock } from "../../../helpers/manual-clock.js";
import { Barrier } from "../../../helpers/watched-files.js";

const MIB = 1024 * 1024;

function watched(): { readonly syncs: SyncWatch; readonly clock: ManualClock; readonly log: readonly LogLine[] } {
  const clock = new ManualClock();
  const { log, lines } = keptLog();
  return { syncs: new SyncWatch({ clock, log }), clock, log: lines };
}

const ERROR = { level: "error", message: "the disk has not answered for 5 s: appends wait until it does", fields: {} };

describe("the watch over syncs", () => {
  test("tells how long each took, and needs one timer for many", () => {
    const { syncs, clock, log } = watched();
    for (const tookMs of [0, 3, 900]) {
      syncs.begin();
      clock.advance(tookMs);
      assert.equal(syncs.end(), tookMs);
      assert.equal(clock.pendingCount, 1);
    }
    clock.advance(1000);
    assert.deepEqual([clock.pendingCount, syncs.unansweredSeconds, syncs.isHanging, log], [0, 0, false, []]);
  });

  test("logs once that the disk does not answer, and once that it does again", () => {
    const { syncs, clock, log } = watched();
    for (let round = 1; round <= 2; round += 1) {
      syncs.begin();
      clock.advance(5000);
      assert.deepEqual([syncs.unansweredSeconds, log.length], [4, 2 * round - 2]);
      clock.advance(1000);
      assert.deepEqual([syncs.unansweredSeconds, log.at(-1), syncs.isHanging], [5, ERROR, false]);
      clock.advance(5000);
      assert.deepEqual([syncs.unansweredSeconds, log.length, syncs.isHanging], [10, 2 * round - 1, true]);
      syncs.end();
      assert.deepEqual(log.at(-1), { level: "info", message: "the disk answers again", fields: { afterSeconds: 11 } });
      assert.deepEqual([syncs.unansweredSeconds, syncs.isHanging], [0, false]);
      clock.advance(1000);
    }
    assert.equal(log.length, 4);
  });

  test("does not take many that are answered for one that is not", () => {
    const { syncs, clock, log } = watched();
    for (let count = 0; count < 30; count += 1) {
      syncs.begin();
      clock.advance(900);
      syncs.end();
    }
    assert.deepEqual([syncs.unansweredSeconds, log], [0, []]);
  });

  test("leaves large appends the time that their size takes, and begins anew with each answer", async () => {
    const { syncs, clock, log } = watched();
    const [first, second, third] = [new Barrier(), new Barrier(), new Barrier()];
    const writes = [first, second, third].map(({ opened }) => syncs.large(8 * MIB, () => opened));
    const secondsAfter = (ms: number): number => {
      clock.advance(ms);
      return syncs.unansweredSeconds;
    };
    assert.deepEqual([secondsAfter(10_000), secondsAfter(1000)], [3, 4]);
    first.open();
    await writes[0];
    assert.deepEqual([secondsAfter(0), secondsAfter(9000), log], [0, 4, []]);
    syncs.begin();
    syncs.end();
    assert.deepEqual([secondsAfter(0), secondsAfter(10_000)], [0, 5]);
    assert.deepEqual(log, [ERROR]);
    second.open();
    third.open();
    await Promise.all(writes);
    assert.deepEqual([secondsAfter(1000), log.length, clock.pendingCount], [0, 2, 0]);
  });

  test("excuses nothing by large appends that come when others are overdue, before the disk has answered", () => {
    const { syncs, clock } = watched();
    const disk = new Barrier();
    void syncs.large(MIB, () => disk.opened);
    clock.advance(12_000);
    void syncs.large(40 * MIB, () => disk.opened);
    assert.deepEqual([syncs.unansweredSeconds, syncs.isHanging], [11, true]);
    syncs.answered();
    clock.advance(11_000);
    assert.deepEqual([syncs.unansweredSeconds, syncs.isHanging], [0, false]);
    clock.advance(10_000);
    assert.deepEqual([syncs.unansweredSeconds, syncs.isHanging], [10, true]);
  });

  test("does not say that the disk answers again while another write waits as long", async () => {
    const { syncs, clock, log } = watched();
    const disk = new Barrier();
    const written = assert.rejects(
      syncs.large(MIB, () => disk.opened.then(() => Promise.reject(new Error("no room")))),
      /no room/,
    );
    syncs.begin();
    clock.advance(8000);
    disk.open();
    await written;
    assert.deepEqual([syncs.unansweredSeconds, log], [7, [ERROR]]);
    syncs.end();
    assert.deepEqual([syncs.unansweredSeconds, log.length], [0, 2]);
  });

  test("counts to a quarter of a second, and tells in the end how long it was", () => {
    const { syncs, clock, log } = watched();
    syncs.begin();
    clock.advance(5000);
    assert.equal(log.length, 0);
    clock.advance(250);
    assert.equal(log.length, 1);
    clock.advance(8750);
    syncs.end();
    assert.deepEqual(log.at(-1)?.fields, { afterSeconds: 14 });
  });

  test("counts the wait for room in the journal from its begin or the last progress, whichever was later", () => {
    const { syncs, clock, log } = watched();
    for (let count = 0; count < 20; count += 1) {
      syncs.waitForRoom(true);
      clock.advance(4000);
      syncs.progressed();
    }
    assert.deepEqual([syncs.unansweredSeconds, log], [0, []]);
    clock.advance(10_500);
    assert.deepEqual([syncs.unansweredSeconds, syncs.isHanging, log], [10, true, [ERROR]]);
    syncs.begin();
    assert.deepEqual([syncs.unansweredSeconds, log.length], [0, 2]);
    syncs.end();
    clock.advance(60_000);
    assert.deepEqual([syncs.unansweredSeconds, clock.pendingCount], [0, 0]);
  });

  test("leaves what makes room the time that its bytes take, and those of a large append before it", async () => {
    const { syncs, clock } = watched();
    const disk = new Barrier();
    syncs.waitForRoom(true);
    const large = syncs.large(16 * MIB, () => Promise.resolve());
    const synced = syncs.bringing(40 * MIB, () => disk.opened);
    await large;
    clock.advance(14_000);
    assert.equal(syncs.unansweredSeconds, 0);
    clock.advance(10_250);
    assert.deepEqual([syncs.unansweredSeconds, syncs.isHanging], [10, true]);
    disk.open();
    await synced;
    clock.advance(5000);
    assert.equal(syncs.unansweredSeconds, 4);
  });
});
