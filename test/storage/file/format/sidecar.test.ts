import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decodeSidecar, encodeNotice, encodeSidecar, seal, type Sidecar } from "../../../../src/storage/file/format/sidecar.js";
import { MutableState } from "../../../../src/storage/state.js";
import { configOf, recordOf } from "../../../helpers/engine.js";

function sidecarOf(more: Partial<Sidecar> = {}): Sidecar {
  const state = new MutableState();
  state.apply(recordOf("", { seq: '\u2028"7', producer: { id: "wörker", epoch: 1, seq: 2 ** 53 - 1 }, atMs: 77 }), 50);
  state.apply(recordOf("", { producer: { id: "other", epoch: 0, seq: 0 }, atMs: 78, closes: true }), 50);
  const inline = { messages: 3, atMs: 2, length: 4, inline: Uint8Array.of(20, 0, 108, 1), crc: 0 };
  const inFile = { messages: 3000, atMs: 4, length: 9000, inline: null, crc: 0xabc };
  const segments = [
    { start: 0, length: 64, crc: 0xff, firstAtMs: 1, newestAtMs: 2, index: inline },
    { start: 64, length: 30, crc: 0xdeadbeef, firstAtMs: 3, newestAtMs: 4, index: inFile },
    { start: 94, length: 3, crc: 5, firstAtMs: 3, newestAtMs: 4, index: "one" as const },
    { start: 97, length: 3, crc: 5, firstAtMs: 3, newestAtMs: 4, index: null },
  ];
  return {
    id: "abc",
    name: "a/\u{1F600}",
    config: configOf({ ttlSeconds: 5, createdAtMs: 3 }),
    state,
    earliest: { position: 0, segmentStart: 0 },
    forks: null,
    softDeleted: false,
    segments,
    batch: 12,
    claimed: false,
    ...more,
  };
}

const NOT_UNDERSTOOD = { kind: "damaged", problem: "its checksum fits, but it can't be understood", isFinal: false, isNotice: false };

describe("a sidecar", () => {
  for (const [what, sidecar] of [
    ["of a closed stream with producers", sidecarOf()],
    ["of a new stream", sidecarOf({ state: new MutableState(), segments: [], batch: 0 })],
    [
      "of which only the end is kept",
      sidecarOf({
        earliest: { position: 64, segmentStart: 0 },
        segments: [{ start: 64, length: 36, crc: 1, firstAtMs: 5, newestAtMs: 6, index: "one" }],
      }),
    ],
    ["that only claims a directory", sidecarOf({ state: new MutableState(), segments: [], claimed: true })],
    ["with an expiry", sidecarOf({ config: configOf({ expiresAtMs: 1.7e12 }) })],
  ] as const) {
    test(`reads back as it was written: ${what}`, () =>
      assert.deepEqual(decodeSidecar(encodeSidecar(sidecar)), { kind: "sound", sidecar }));
  }

  test("is JSON that a human and any tool can read", () => {
    const text = encodeSidecar(sidecarOf()).toString();
    assert.match(text, /^\{\n"format": 1,\n/);
    const json = JSON.parse(text);
    assert.equal(json.name, "a/\u{1F600}");
    assert.deepEqual(json.segments[1], {
      start: 64,
      length: 30,
      crc32: "deadbeef",
      firstAtMs: 3,
      newestAtMs: 4,
      index: { messages: 3000, atMs: 4, length: 9000, crc32: "00000abc" },
    });
    assert.deepEqual(json.segments[0].index, { messages: 3, atMs: 2, length: 4, bytes: "FABsAQ==" });
    assert.equal(json.segments[0].crc32, "000000ff");
  });

  test("with any other bit is damaged", () => {
    const bytes = encodeSidecar(sidecarOf());
    for (let at = 0; at < bytes.length * 8; at += 1) {
      const spoiled = Buffer.from(bytes);
      spoiled[at >> 3] = (spoiled[at >> 3] ?? 0) ^ (1 << (at & 7));
      assert.equal(decodeSidecar(spoiled).kind, "damaged", `bit ${at & 7} of byte ${at >> 3}`);
    }
  });

  test("may say itself that its stream is damaged, to humans too", () => {
    const notice = encodeNotice({ id: "abc", name: "a", config: configOf() }, "0000.seg: gone");
    assert.deepEqual(decodeSidecar(notice), { kind: "damaged", problem: "0000.seg: gone", isFinal: false, isNotice: true });
    assert.equal(JSON.parse(String(notice)).name, "a");
    assert.deepEqual(decodeSidecar(Buffer.from(String(notice).replace("gone", "here"))), {
      kind: "damaged",
      problem: "its checksum does not match",
      isFinal: false,
      isNotice: false,
    });
  });

  test("whose checksum fits, and that no program can have written, is damaged", () => {
    const members = Object.entries(JSON.parse(encodeSidecar(sidecarOf()).toString())).slice(0, -1);
    const withMember = (name: string, value: unknown): Buffer => seal(members.map(([key, old]) => [key, key === name ? value : old]));
    assert.equal(decodeSidecar(withMember("", 0)).kind, "sound");
    for (const [name, value] of [
      ["segments", 7],
      ["segments", [{ start: 0, length: 1, crc32: "00000001" }]],
      ["segments", [{ start: -1, length: 1, crc32: "00000001", index: null }]],
      ["segments", [{ start: 0, length: 1, crc32: "x", index: null }]],
      ["producers", null],
      ["earliest", null],
      ["tail", "50"],
      ["batch", 1.5],
      ["name", 5],
    ] as const)
      assert.deepEqual(decodeSidecar(withMember(name, value)), NOT_UNDERSTOOD, `${name}: ${JSON.stringify(value)}`);
    assert.deepEqual(decodeSidecar(seal([["format", 1]])), NOT_UNDERSTOOD);
    assert.deepEqual(
      decodeSidecar(
        seal([
          ["format", 1],
          ["damage", 5],
        ]),
      ),
      NOT_UNDERSTOOD,
    );
  });

  test("that was cut off is damaged", () => {
    const bytes = encodeSidecar(sidecarOf());
    for (const length of [0, 1, 20, bytes.length - 1]) {
      assert.deepEqual(decodeSidecar(bytes.subarray(0, length)), {
        kind: "damaged",
        problem: "it is not a whole sidecar",
        isFinal: false,
        isNotice: false,
      });
    }
  });

  test("of another version is refused, never guessed at", () => {
    const text = encodeSidecar(sidecarOf()).toString().replace('"format": 1', '"format": 2');
    assert.deepEqual(decodeSidecar(Buffer.from(text)), {
      kind: "damaged",
      problem: "format 2 is not known to this version, which writes format 1",
      isFinal: true,
      isNotice: false,
    });
  });
});
