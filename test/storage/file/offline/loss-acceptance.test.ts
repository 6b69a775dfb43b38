import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Quarantine } from "../../../../src/storage/file/directory/quarantine.js";
import { Layout, lossesPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { acceptanceOf, type Acceptance } from "../../../../src/storage/file/offline/loss-acceptance.js";
import { decodeLosses } from "../../../../src/storage/file/survey/losses.js";
import { decodeSidecar, encodeRefusal, type Sidecar } from "../../../../src/storage/file/format/sidecar.js";
import { checkStream } from "../../../../src/storage/file/survey/stream-check.js";
import { repairSteps } from "../../../helpers/repair-steps.js";
import { append, created, openEngine } from "../../../helpers/engine.js";
import { WatchedFiles } from "../../../helpers/watched-files.js";

interface Refused {
  readonly directory: string;
  readonly accept: (isSource?: boolean) => Promise<Acceptance | string>;
}

/** A stream of two segments that a repair refused, the first of 3,000 bytes. */
async function refused(): Promise<Refused> {
  const { dir, storage } = await openEngine();
  const stream = await created(storage, "s", "x".repeat(3000));
  await append(storage, stream, "y".repeat(3000));
  await storage.close();
  const files = new WatchedFiles();
  const layout = new Layout(dir);
  const directory = layout.streamDirectory("s");
  await new Quarantine({ files, layout }).refuse(directory, "it may have lost its end", { batch: 50 });
  const accept = async (isSource = false): Promise<Acceptance | string> => {
    const steps = Object.assign(repairSteps({ files, layout, nowMs: 77 }), { isSource: () => isSource });
    return acceptanceOf(steps, await checkStream({ files, layout }, directory), 60);
  };
  return { directory, accept };
}

function sidecarIn(directory: string): Sidecar {
  const read = decodeSidecar(readFileSync(sidecarPath(directory)));
  assert.ok(read.kind === "sound");
  return read.sidecar;
}

async function run(acceptance: Acceptance | string): Promise<string> {
  assert.ok(typeof acceptance !== "string", String(acceptance));
  await acceptance.run();
  return acceptance.what;
}

describe("an accepted loss", () => {
  test("puts back what there was, asks for nothing of the journal, and is written down", async () => {
    const { directory, accept } = await refused();
    assert.match(await run(await accept()), /^serve "s" again with 6000 bytes, .* positions from 6000 on are given out again$/);
    const { state, batch, segments } = sidecarIn(directory);
    assert.deepEqual([state.tail, state.closed, batch, segments.length], [6000, false, 60, 2]);
    const losses = decodeLosses(readFileSync(lossesPath(directory)));
    assert.ok(typeof losses !== "string");
    assert.deepEqual(losses.accepted, [{ position: 6000, reason: "it may have lost its end", acceptedAtMs: 77 }]);
  });

  test("drops the last segments that are lost", async () => {
    const { directory, accept } = await refused();
    rmSync(join(directory, "0000000000003000.seg"));
    assert.match(await run(await accept()), /again with 3000 bytes/);
    assert.deepEqual(
      sidecarIn(directory).segments.map(({ start }) => start),
      [0],
    );
  });

  test("keeps what is behind a segment that is lost in the middle", async () => {
    const { directory, accept } = await refused();
    rmSync(join(directory, "0000000000000000.seg"));
    assert.match(await run(await accept()), /again with 6000 bytes/);
    assert.equal(sidecarIn(directory).segments.length, 2);
  });

  test("of all segments leaves an empty stream", async () => {
    const { directory, accept } = await refused();
    for (const file of ["0000000000000000.seg", "0000000000003000.seg"]) rmSync(join(directory, file));
    assert.match(await run(await accept()), /again with 0 bytes/);
    assert.deepEqual(sidecarIn(directory).segments, []);
  });

  test("leaves a stream closed that has forks: they may share what is lost", async () => {
    const { directory, accept } = await refused();
    assert.match(await run(await accept(true)), /it is closed$/);
    assert.equal(sidecarIn(directory).state.closed, true);
  });

  test("is written down once when it is done again after a crash in the middle", async () => {
    const { directory, accept } = await refused();
    const before = readFileSync(sidecarPath(directory));
    await run(await accept());
    await new Quarantine({ files: new WatchedFiles(), layout: new Layout(join(directory, "../../..")) }).replaceSidecar(directory, before);
    await run(await accept());
    const losses = decodeLosses(readFileSync(lossesPath(directory)));
    assert.equal(typeof losses === "string" ? 0 : losses.accepted.length, 1);
  });

  test("of a stream of which nothing was kept frees its name", async () => {
    const { directory, accept } = await refused();
    rmSync(sidecarPath(directory).replace("streams", "damaged/streams"));
    assert.deepEqual(readFileSync(sidecarPath(directory)), encodeRefusal("it may have lost its end"));
    assert.match(await run(await accept()), /its name is free/);
    assert.ok(!existsSync(directory));
  });
});
