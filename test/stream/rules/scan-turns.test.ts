import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { StorageBusyError } from "../../../src/storage/storage.js";
import { whileScanning } from "../../../src/stream/rules/scan-turns.js";
import { Barrier } from "../../helpers/watched-files.js";

const LARGE_BYTES = 256 * 1024;

const twoTurns = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

describe("those who look through many bytes", () => {
  test("go on one in a turn of the event loop, in their order, and those with few bytes at once", async () => {
    let turns = 0;
    const count = (): void => {
      turns += 1;
      immediate = setImmediate(count);
    };
    let immediate = setImmediate(count);
    const went: [who: number, turn: number][] = [];
    const go = (who: number, bytes: number): Promise<void> =>
      whileScanning(undefined, async (scan) => {
        for (let step = 0; step < 2; step += 1) await scan.step(bytes, () => went.push([who, turns]));
      });
    await Promise.all([go(1, LARGE_BYTES), go(2, LARGE_BYTES), go(3, 1024)]);
    clearImmediate(immediate);
    assert.deepEqual(
      went.map(([who]) => who),
      [3, 3, 1, 2, 1, 2],
    );
    const large = went.filter(([who]) => who < 3).map(([, turn]) => turn);
    assert.equal(new Set(large).size, 4, large.join(", "));
  });

  test("read nothing before their turn, and nothing once their client has gone", async () => {
    const client = { isGone: false };
    const disk = new Barrier();
    const read: string[] = [];
    const search = (who: string, waitsFor?: Promise<void>): Promise<void> =>
      whileScanning(client, (scan) =>
        scan.step(LARGE_BYTES, () => {
          read.push(who);
          reading();
          return waitsFor;
        }),
      );
    let reading: () => void = () => undefined;
    const isReading = new Promise<void>((resolve) => (reading = resolve));
    const first = search("first", disk.opened);
    const second = search("second");
    await isReading;
    await twoTurns();
    assert.deepEqual(read, ["first"]);
    client.isGone = true;
    disk.open();
    await first;
    await assert.rejects(second, StorageBusyError);
    client.isGone = false;
    await search("third");
    assert.deepEqual(read, ["first", "third"]);
  });

  test("are 1,024 at a time; those under way go on, and those with few bytes do not count", async () => {
    const hold = new Barrier();
    const search = (): Promise<void> =>
      whileScanning(undefined, async (scan) => {
        await scan.step(LARGE_BYTES, () => undefined);
        await hold.opened;
        await scan.step(LARGE_BYTES, () => undefined);
      });
    const searches = Array.from({ length: 1024 }, search);
    await assert.rejects(search(), StorageBusyError);
    assert.equal(await whileScanning(undefined, (scan) => scan.step(1024, () => "few")), "few");
    hold.open();
    await Promise.all(searches);
    await search();
  });
});
