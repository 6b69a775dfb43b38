import assert from "node:assert/strict";
import test from "node:test";
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
