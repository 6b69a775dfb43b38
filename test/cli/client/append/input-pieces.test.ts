import assert from "node:assert/strict";
import { Readable } from "node:stream";
import test, { describe } from "node:test";
import { InputPieces, type InputPiecesOptions, type NextPiece } from "../../../../src/cli/client/append/input-pieces.js";
import { seededRandom } from "../../../protocol/seeded-random.js";

async function allOf(chunks: readonly (string | Buffer)[], options: Partial<InputPiecesOptions> = {}): Promise<NextPiece[]> {
  const input = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
  const pieces = new InputPieces(input, { cutting: "lines", maxBytes: 10, skip: 0, firstBytes: 0, ...options });
  const all: NextPiece[] = [];
  for (let piece = await pieces.next(); piece !== null; piece = await pieces.next()) {
    all.push(piece);
    if (piece.kind !== "piece") break;
  }
  return all;
}

async function bodiesOf(chunks: readonly (string | Buffer)[], options: Partial<InputPiecesOptions> = {}): Promise<string[]> {
  return (await allOf(chunks, options)).map((piece) => (piece?.kind === "piece" ? piece.body.toString() : "fault"));
}

describe("the input", () => {
  test("is cut at the ends of lines, and at its own end", async () => {
    assert.deepEqual(await bodiesOf(["aaa\nbbb\nccc\nddd\nlonger than all\nend"]), [
      "aaa\nbbb\n",
      "ccc\nddd\n",
      "longer than all\n",
      "end",
    ]);
  });

  test("is cut anywhere where it is bytes", async () => {
    assert.equal((await bodiesOf(["abcdefghijklmnop\nq"], { cutting: "bytes" })).join("|"), "abcdefghij|klmnop\nq");
  });

  test("begins where another run ended, with the piece that it sent last", async () => {
    assert.deepEqual(await bodiesOf(["a\nb\nc\nd\n"], { skip: 2, firstBytes: 4 }), ["b\nc\n", "d\n"]);
    assert.deepEqual(await bodiesOf(["a\n", "b\nc", "\nd\n"], { skip: 2, firstBytes: 4 }), ["b\nc\n", "d\n"]);
  });

  test("is short where it ends before what another run has sent of it", async () => {
    for (const cutting of ["bytes", "lines", "json"] as const)
      for (const [input, skip, firstBytes] of [
        [[], 1, 0],
        [[], 0, 1],
        [["1\n"], 3, 0],
        [["1\n", "2\n"], 2, 3],
      ] as const)
        assert.deepEqual(await allOf(input, { cutting, skip, firstBytes }), [{ kind: "short" }]);
    assert.deepEqual(await allOf(["1\n"], { skip: 2 }), []);
    assert.deepEqual(await bodiesOf(["1\n2\n"], { skip: 2, firstBytes: 2 }), ["2\n"]);
  });

  test("as JSON has one value a line, without blank lines", async () => {
    const pieces = await allOf(['1\n\n [2] \r\n"three"\n'], { cutting: "json", maxBytes: 100 });
    assert.deepEqual(
      pieces.map((piece) => piece?.kind === "piece" && [piece.body.toString(), piece.source.length, piece.lines]),
      [['[1,\n [2] \r,\n"three"]', 18, 4]],
    );
  });

  test("names the line that is no JSON", async () => {
    const [, fault] = await allOf(["1\n2\n", "[\n"], { cutting: "json", maxBytes: 4, skip: 2 });
    assert.ok(fault?.kind === "fault");
    assert.equal(fault.line, 3);
  });

  test("is all there, whatever pieces it comes in", async () => {
    const random = seededRandom(7);
    for (let round = 0; round < 200; round += 1) {
      const text = Array.from({ length: Math.floor(random() * 60) }, () => "ab\n"[Math.floor(random() * 3)]).join("");
      const chunks: string[] = [];
      for (let at = 0; at < text.length;) {
        const length = 1 + Math.floor(random() * 9);
        chunks.push(text.slice(at, at + length));
        at += length;
      }
      const skip = Math.floor(random() * text.length);
      const cutting = random() < 0.5 ? "lines" : "bytes";
      assert.equal(
        (await bodiesOf(chunks, { cutting, maxBytes: 1 + Math.floor(random() * 12), skip })).join(""),
        text.slice(skip),
        `round ${round}`,
      );
    }
  });

  test("is not read far ahead", async () => {
    let given = 0;
    const endless = new Readable({
      highWaterMark: 1,
      read() {
        given += 100;
        this.push(Buffer.alloc(100, "x\n"));
      },
    });
    const pieces = new InputPieces(endless, { cutting: "lines", maxBytes: 100, skip: 0, firstBytes: 0 });
    for (let at = 1; at <= 20; at += 1) {
      assert.equal((await pieces.next())?.kind, "piece");
      await new Promise((resolve) => setImmediate(resolve));
      assert.ok(given <= (at + 8) * 100, `${given} bytes were read for ${at} pieces`);
    }
    pieces.stop();
    assert.equal(await pieces.next(), null);
    assert.ok(endless.destroyed);
  });

  test("rejects with what it can't be read for", async () => {
    const broken = new Readable({
      read() {
        this.destroy(new Error("EIO"));
      },
    });
    const pieces = new InputPieces(broken, { cutting: "bytes", maxBytes: 10, skip: 0, firstBytes: 0 });
    await assert.rejects(pieces.next(), /EIO/);
  });
});
