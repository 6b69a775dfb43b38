import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { crc32 } from "../../src/storage/file/format/crc32.js";
import { append, copyOf, created, openEngine } from "../helpers/engine.js";
import { RealServer } from "../helpers/real-server.js";

const MIB = 1024 * 1024;
const STREAMS = 500;
const PAYLOAD = Buffer.alloc(400, "payload ");
/** What a record takes beside its payload. */
const RECORD_BYTES = 40;
/** Records of one batch: as many as clients wait for. */
const BATCH = 1000;
/** The journal is just not full enough for the next file. */
const FILL_BYTES = 60 * MIB;
/**
 * How much longer the recovery may take than reading the same bytes and their checksums: it reads them twice, makes
 * records and streams of them, and writes half of them to segments.
 */
const MAX_RATIO = 40;

/** A data directory as kill -9 leaves it, with a full journal of the default size. */
async function fullJournal(): Promise<string> {
  const sizes = { segmentBytes: 64 * MIB, journalBytes: 64 * MIB, journalBypassBytes: MIB / 4, tailCacheBytes: 64 * MIB };
  const { storage, dir } = await openEngine(sizes);
  const streams = await Promise.all(Array.from({ length: STREAMS }, (_, index) => created(storage, `stream/${index}`)));
  for (let bytes = 0; bytes < FILL_BYTES; bytes += BATCH * (PAYLOAD.length + RECORD_BYTES)) {
    await Promise.all(Array.from({ length: BATCH }, (_, index) => append(storage, streams[index % STREAMS] ?? assert.fail(), PAYLOAD)));
  }
  const copy = copyOf(dir);
  await storage.close();
  return copy;
}

/** Milliseconds that reading the journal and its checksums takes, without anything else. */
function bareReadMs(dir: string): number {
  const startedMs = performance.now();
  for (const name of readdirSync(join(dir, "journal"))) crc32(readFileSync(join(dir, "journal", name)));
  return performance.now() - startedMs;
}

test("a full journal is recovered in a small multiple of the time that reading it takes", async (context) => {
  const dir = await fullJournal();
  const bytes = readdirSync(join(dir, "journal")).reduce((sum, name) => sum + statSync(join(dir, "journal", name)).size, 0);
  assert.ok(bytes >= 64 * MIB);
  bareReadMs(dir);
  const bareMs = bareReadMs(dir);
  const server = new RealServer(context, [], dir);
  const startedMs = performance.now();
  await server.start();
  const startMs = performance.now() - startedMs;
  const line = await server.process.stderrLine(/recovered from the journal/);
  const [, records = "", ms = ""] = /records=(\d+) .*ms=(\d+)/.exec(line) ?? [];
  context.diagnostic(
    `${records} records of a journal of ${bytes / MIB} MiB: recovered in ${ms} ms, ready after ${startMs.toFixed(0)} ms with the start of Node, bare reading ${bareMs.toFixed(0)} ms`,
  );
  assert.ok(Number(ms) < bareMs * MAX_RATIO, `${ms} ms, ${bareMs} ms to read`);
  const perStream = (Number(records) - STREAMS) / STREAMS;
  const { body } = await server.ask("GET", "stream/7");
  assert.equal(body.length, perStream * PAYLOAD.length);
});
