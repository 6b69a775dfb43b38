import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { Quarantine } from "../../../../src/storage/file/directory/quarantine.js";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { coveredSidecarPath, Layout } from "../../../../src/storage/file/format/layout.js";
import { decodeSidecar, encodeNotice, encodeSidecar, refusalIn, type Sidecar } from "../../../../src/storage/file/format/sidecar.js";
import { MutableState } from "../../../../src/storage/state.js";
import { configOf } from "../../../helpers/engine.js";
import { tempDir } from "../../../helpers/temp-dir.js";

function setUp(): { quarantine: Quarantine; layout: Layout; path: string } {
  const layout = new Layout(tempDir());
  const path = join(layout.streamDirectory("s"), "meta.json");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "one");
  return { quarantine: new Quarantine({ files: systemFiles(true), layout }), layout, path };
}

/** A sidecar of a stream that has nothing. */
function sidecarOf(more: Partial<Sidecar> = {}): Sidecar {
  return {
    id: "a",
    name: "s",
    config: configOf(),
    state: new MutableState(),
    earliest: { position: 0, segmentStart: 0 },
    forks: null,
    softDeleted: false,
    segments: [],
    batch: 3,
    claimed: false,
    ...more,
  };
}

describe("what is damaged", () => {
  test("is moved to its own place below damaged/, and never over what is there", async () => {
    const { quarantine, layout, path } = setUp();
    const kept = await quarantine.move(path);
    assert.equal(kept, path.replace(layout.root, layout.damaged));
    writeFileSync(path, "two");
    assert.equal(await quarantine.move(path), `${kept}.2`);
    assert.deepEqual([readFileSync(kept, "utf8"), readFileSync(`${kept}.2`, "utf8"), existsSync(path)], ["one", "two", false]);
  });

  test("is copied once, however often", async () => {
    const { quarantine, path } = setUp();
    const first = await quarantine.copy(path, Buffer.from("one"));
    assert.equal(await quarantine.copy(path, Buffer.from("one")), first);
    assert.equal(await quarantine.copy(path, Buffer.from("two")), `${first}.2`);
    assert.equal(readFileSync(path, "utf8"), "one");
  });

  test("may be a directory, beside another one", async () => {
    const { quarantine, path } = setUp();
    const kept = await quarantine.move(dirname(path));
    mkdirSync(dirname(path));
    assert.equal(await quarantine.move(dirname(path)), `${kept}.2`);
    assert.equal(readFileSync(join(kept, "meta.json"), "utf8"), "one");
  });

  test("is a reason to refuse a stream, whose sidecar is kept", async () => {
    const { quarantine, path } = setUp();
    await quarantine.refuse(dirname(path), "its end is lost");
    assert.deepEqual(await copiesOf(quarantine, path), [Buffer.from("one")]);
    assert.deepEqual(decodeSidecar(readFileSync(path)), { kind: "damaged", problem: "its end is lost", isFinal: true, isNotice: false });
  });

  test("is a reason to close a stream with forks, once: they go on reading it", async () => {
    const { quarantine, path } = setUp();
    const open = encodeSidecar(sidecarOf({ forks: new Map([["b", 5]]) }));
    writeFileSync(path, open);
    await quarantine.refuse(dirname(path), "its end is lost", { batch: 7 });
    assert.deepEqual(await copiesOf(quarantine, path), [open]);
    const read = decodeSidecar(readFileSync(path));
    assert.ok(read.kind === "sound" && read.sidecar.state.closed && read.sidecar.forks?.get("b") === 5);
    assert.equal(read.sidecar.batch, 7);
    await quarantine.refuse(dirname(path), "its end is lost");
    assert.deepEqual(await copiesOf(quarantine, path), [open]);
  });

  test("is a reason to refuse a stream with forks, too, whose directory is only taken: there is nothing to read", async () => {
    const { quarantine, path } = setUp();
    const claim = encodeSidecar(sidecarOf({ batch: 0, claimed: true }));
    writeFileSync(path, claim);
    await quarantine.refuse(dirname(path), "its creation is lost", { isSource: true });
    assert.deepEqual([refusalIn(readFileSync(path)), await copiesOf(quarantine, path)], ["its creation is lost", [claim]]);
  });

  test("is a reason to refuse a stream in whose sidecar's place a notice stands: the sidecar beside it is kept, too", async () => {
    const { quarantine, path } = setUp();
    const own = encodeSidecar(sidecarOf());
    const notice = encodeNotice(sidecarOf(), "its files can't be written");
    writeFileSync(path, notice);
    writeFileSync(coveredSidecarPath(dirname(path)), own);
    await quarantine.refuse(dirname(path), "its end is lost");
    assert.deepEqual(await copiesOf(quarantine, path), [notice, own]);
    assert.equal(refusalIn(readFileSync(path)), "its end is lost");
  });
});

async function copiesOf(quarantine: Quarantine, path: string): Promise<Buffer[]> {
  const copies: Buffer[] = [];
  for await (const copy of quarantine.copiesOf(path)) copies.push(copy);
  return copies;
}
