import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { findMarker, readMarker, replaceMarker } from "../../../../src/storage/file/directory/marker.js";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const files = systemFiles(false);
const ID = "0123456789abcdef";

function marked(text: string): Layout {
  const layout = new Layout(tempDir());
  writeFileSync(layout.marker, text);
  return layout;
}

describe("the marker of a directory", () => {
  test("gives the directory's id", async () => {
    assert.equal((await readMarker(files, marked(`{"format":1,"directory":"${ID}"}\n`)))?.toString("hex"), ID);
    assert.equal(await readMarker(files, new Layout(tempDir())), null);
  });

  test("comes back as it was written, at rest and in the middle of an upgrade", async () => {
    const layout = new Layout(tempDir());
    for (const [restores, upgradingTo] of [
      [[], null],
      [[], 2],
      [[1_790_000_000_000], null],
      [[1_790_000_000_000, 1_790_000_000_001], 2],
    ] as const) {
      const marker = { format: 1, directoryId: Buffer.from(ID, "hex"), restores, upgradingTo };
      await replaceMarker(files, layout, marker);
      assert.deepEqual(await findMarker(files, layout), marker);
    }
    assert.equal(
      readFileSync(layout.marker, "utf8"),
      `{"format":1,"directory":"${ID}","restoredAtMs":[1790000000000,1790000000001],"upgradingTo":2}\n`,
    );
  });

  for (const [what, text, problem] of [
    [
      "of a newer format, whatever else it says",
      '{"format":3,"epoch":{"a":1}}\n',
      "has format 3; this version knows format 1: use a newer version",
    ],
    ["of an older format", `{"format":0,"directory":"${ID}"}\n`, "has format 0; this version knows format 1: streamdir upgrade brings it"],
    ["damaged", '{"format":1,"directory":"short"}\n', "is damaged"],
    ["that says more", `{"format":1,"directory":"${ID}","epoch":{"a":1}}\n`, "does not know: use a newer version of streamdir"],
    ["cut off", '{"format":1', "is damaged"],
    [
      "of an upgrade that was cut short",
      `{"format":0,"directory":"${ID}","upgradingTo":1}\n`,
      "to format 1 was cut short: run streamdir upgrade again",
    ],
    [
      "of a newer version's upgrade",
      `{"format":1,"directory":"${ID}","upgradingTo":2}\n`,
      "to format 2 was cut short: run streamdir upgrade again of a version that knows format 2",
    ],
  ] as const) {
    test(`that is ${what} refuses the directory`, async () => {
      const layout = marked(text);
      await assert.rejects(readMarker(files, layout), (error: Error) => error.name === "DirectoryError" && error.message.includes(problem));
    });
  }
});
