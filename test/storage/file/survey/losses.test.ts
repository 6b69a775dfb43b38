import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decodeLosses, describeLoss, encodeLosses } from "../../../../src/storage/file/survey/losses.js";
import { seal } from "../../../../src/storage/file/format/sidecar.js";

const LOSS = { position: 4, reason: "records of it are lost", acceptedAtMs: 0 };
const LOSSES = { id: "abc", name: "ä/b", accepted: [LOSS] };

describe("losses that were accepted", () => {
  test("read back as they were written", () => assert.deepEqual(decodeLosses(encodeLosses(LOSSES)), LOSSES));

  test("are a hundred at most, the newest", () => {
    const many = Array.from({ length: 150 }, (_, position) => ({ ...LOSS, position }));
    const read = decodeLosses(encodeLosses({ ...LOSSES, accepted: many }));
    assert.ok(typeof read !== "string");
    assert.deepEqual([read.accepted.length, read.accepted[0]?.position], [100, 50]);
  });

  test("are refused when they are not whole, spoilt or of another format", () => {
    const bytes = encodeLosses(LOSSES);
    assert.equal(decodeLosses(bytes.subarray(0, -1)), "it is not whole");
    assert.equal(decodeLosses(Buffer.from(String(bytes).replace("abc", "abd"))), "its checksum does not match");
    assert.equal(
      decodeLosses(
        seal([
          ["format", 2],
          ["id", "abc"],
        ]),
      ),
      "format 2 is not known to this version, which writes format 1",
    );
  });

  test("are told in words", () =>
    assert.equal(describeLoss(LOSS), "what it had from position 4 on was given up at 1970-01-01T00:00:00.000Z: records of it are lost"));
});
