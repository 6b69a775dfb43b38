import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { VerbServer } from "../../../helpers/client-verb.js";
import { startProgram } from "../../../helpers/process.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { DataOutput } from "../../../../src/cli/client/session/data-output.js";

/** An output whose writes end with this error. */
function ending(error: Error | null): DataOutput {
  return new DataOutput({ write: (_, written) => void setImmediate(() => written?.(error)) }, new AbortController().signal);
}

test("a write ends when the bytes have left, or nobody reads them any more", async () => {
  assert.equal(await ending(null).write("a"), "written");
  assert.equal(await ending(null).writeJson({ a: 1 }), "written");
  for (const code of ["EPIPE", "ERR_STREAM_DESTROYED"])
    assert.equal(await ending(Object.assign(new Error(code), { code })).write("a"), "gone");
  assert.equal(await ending(new Error("not called")).write(""), "written");
});

/** What an output is given. */
function outputOf(isTTY: boolean): { out: DataOutput; text: () => string } {
  let text = "";
  const write = (bytes: string | Buffer, written?: () => void): void => {
    text += String(bytes);
    written?.();
  };
  return { out: new DataOutput({ isTTY, write }, new AbortController().signal), text: () => text };
}

test("JSON has nothing that acts on a terminal, and its value stays the same", async () => {
  const value = { contentType: "text/plain;\u009b2J\u007f\u202e\u2028" };
  for (const isTTY of [true, false]) {
    const { out, text } = outputOf(isTTY);
    await out.writeJson(value);
    assert.equal(text(), '{"contentType":"text/plain;\\u009b2J\\u007f\\u202e\\u2028"}\n');
    assert.deepEqual(JSON.parse(text()), value);
  }
});

test("a name is shown on a terminal, and as it is to a pipe", () => {
  const name = "safe\u202etxt.exe\u2028";
  assert.equal(outputOf(true).out.shown(name), "safe\\u202etxt.exe\\u2028");
  assert.equal(outputOf(false).out.shown(name), name);
});

test("a write that fails otherwise is a fault", async () => {
  await assert.rejects(ending(Object.assign(new Error("full"), { code: "ENOSPC" })).write("a"), /full/);
});

test("a write that nobody takes ends with the verb", async () => {
  const ending = new AbortController();
  const out = new DataOutput({ write: () => {} }, ending.signal);
  const written = out.write("a");
  assert.equal(out.isCut, false);
  ending.abort(130);
  assert.deepEqual([await written, out.isCut, await out.write("b")], ["gone", true, "gone"]);
});

test("a file gets what is written without the stream around it, which takes a part for all", async () => {
  const path = join(tempDir(), "file");
  const fd = openSync(path, "w");
  const out = new DataOutput({ fd, write: () => assert.fail("it is written past") }, new AbortController().signal);
  assert.equal(await out.write("ü\n"), "written");
  assert.equal(await out.write(Buffer.from([0xff])), "written");
  closeSync(fd);
  assert.deepEqual(readFileSync(path), Buffer.from("c3bc0aff", "hex"));
});

test("a file that can't be written is a fault", async (t) => {
  const fd = openSync(fileURLToPath(import.meta.url), "r");
  t.after(() => closeSync(fd));
  const out = new DataOutput({ fd, write: () => assert.fail("it is written past") }, new AbortController().signal);
  await assert.rejects(out.write("a"), { code: "EBADF", syscall: "write" });
});

test("a file that can't grow as long as a stream is ends a verb with 74, however short the last write is", async (t) => {
  const server = new VerbServer(t);
  await server.done(["append", "s", "--create"], "x".repeat(1500));
  const main = fileURLToPath(new URL("../../../../src/cli/main.ts", import.meta.url));
  const command = [process.execPath, "--import", import.meta.resolve("tsx"), main];
  for (const verb of ["cat", "tail", "export"]) {
    const file = join(tempDir(), "file");
    // The limit is for all that is written: no report of coverage, and no cache of modules.
    const script = 'unset NODE_V8_COVERAGE; file=$1; shift; ulimit -f 1; exec "$@" > "$file"';
    const env = { STREAMDIR_URL: await server.url(), TSX_DISABLE_CACHE: "1" };
    const { status, stderr } = await startProgram(t, "bash", ["-c", script, "bash", file, ...command, verb, "s"], { env }).ended;
    assert.equal(status, 74, stderr);
    assert.match(stderr, /^streamdir: the input can't be read, or the output can't be written: EFBIG: file too large, write\n$/);
    assert.equal(readFileSync(file).length, 1024);
  }
});
