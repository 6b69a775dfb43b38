import { constants, mkdirSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { median } from "../scale/load.js";

const SECTOR_BYTES = 4096;
const SYNCS = 300;
const MIB = 1024 * 1024;

/** How long this disk takes to make 4 KiB permanent, in milliseconds: the median of many, each in its own place of a file that is there. */
export async function syncMs(directory: string): Promise<number> {
  mkdirSync(directory, { recursive: true });
  const file = await open(join(directory, "sync"), constants.O_RDWR | constants.O_CREAT | (constants.O_DSYNC ?? 0));
  try {
    await file.write(Buffer.alloc(SYNCS * SECTOR_BYTES), 0, SYNCS * SECTOR_BYTES, 0);
    const took: number[] = [];
    for (let index = 0; index < SYNCS; index += 1) {
      const startedMs = performance.now();
      await file.write(Buffer.alloc(SECTOR_BYTES, "x"), 0, SECTOR_BYTES, index * SECTOR_BYTES);
      took.push(performance.now() - startedMs);
    }
    return median(took);
  } finally {
    await file.close();
  }
}

/** Bytes a second that this disk writes in a row, in MB: 1 MiB at a time, `atOnce` of them made permanent by one sync. */
export async function writeMBPerSecond(directory: string, atOnce: number, ms: number): Promise<number> {
  mkdirSync(directory, { recursive: true });
  const file = await open(join(directory, "write"), "w");
  try {
    const payload = Buffer.alloc(MIB, "x");
    const startedMs = performance.now();
    let written = 0;
    while (performance.now() - startedMs < ms) {
      for (let index = 0; index < atOnce; index += 1) await file.write(payload);
      await file.datasync();
      written += atOnce * MIB;
    }
    return written / 1e6 / ((performance.now() - startedMs) / 1000);
  } finally {
    await file.close();
  }
}
