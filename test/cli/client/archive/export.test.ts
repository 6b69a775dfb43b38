import assert from "node:assert/strict";
import { join } from "node:path";
import test, { after, describe } from "node:test";
import { sourcesFirst } from "../../../../src/cli/client/archive/export.js";
import type { ListedStream } from "../../../../src/cli/client/streams/listing.js";
import { addToken } from "../../../../src/auth/auth-file-edits.js";
import { VerbServer } from "../../../helpers/client-verb.js";
import { ManualClock } from "../../../helpers/manual-clock.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const server = new VerbServer({ after });

function stream(name: string, forkedFrom: string | null = null): ListedStream {
  const unknown = { earliestOffset: null, bytes: null, createdAt: null, lastAppendAt: null, ttlSeconds: null, expiresAt: null };
  const facts = { contentType: "a/b", closed: false, nextOffset: "", liveReaders: null, producers: null, may: null };
  return { name, ...facts, ...unknown, isFork: forkedFrom !== null, forkedFrom };
}

describe("streamdir export", () => {
  test("puts sources before their forks, and keeps the order of names beside that", () => {
    const rows: readonly (readonly [readonly (readonly [string, string?])[], string])[] = [
      [[["a"], ["b"]], "ab"],
      [[["a", "c"], ["b"], ["c"]], "cab"],
      [[["a", "b"], ["b", "c"], ["c"]], "cba"],
      [[["a", "gone"], ["b"]], "ab"],
      [
        [
          ["a", "b"],
          ["b", "a"],
        ],
        "ba",
      ],
    ];
    for (const [streams, order] of rows)
      assert.equal(
        sourcesFirst(streams.map(([name, from]) => stream(name, from)))
          .map(({ name }) => name)
          .join(""),
        order,
      );
  });

  test("ends with 66 for no stream, and with 64 on a terminal", async () => {
    assert.equal((await server.run(["export", "none"])).status, 66);
    const { status, stderr } = await server.run(["export", "none"], { isStdoutTerminal: true });
    assert.equal(status, 64);
    assert.match(stderr, /an archive is not for a terminal/);
  });

  test("--json says on standard error what was exported", async () => {
    await server.done(["append", "a", "--lines", "--create"], "x\n");
    const { stderr } = await server.run(["export", "a", "--json"]);
    const { sha256, ...facts } = JSON.parse(stderr);
    assert.deepEqual(facts, { name: "a", bytes: 2, fork: null });
    assert.match(sha256, /^[0-9a-f]{64}$/);
  });

  test("ends with 0 when nobody reads the rest", async () => {
    const { status } = await server.run(["export", "a"], { onStdout: () => Object.assign(new Error("gone"), { code: "EPIPE" }) });
    assert.equal(status, 0);
  });

  test("has the whole time to live also of a stream that its reader may not list", async (t) => {
    const auth = join(tempDir(), "auth.json");
    const grants = { id: "reader", allow: ["create", "append", "read"] as const, streams: ["**"], lifetimeMs: null };
    const token = await addToken(auth, grants, Date.now());
    const clock = new ManualClock(Date.now());
    const blind = new VerbServer(t, { auth, clock });
    const env = { STREAMDIR_TOKEN: token };
    const lifetime = ["--ttl", "1d"];
    assert.equal((await blind.run(["create", "s", "--type", "text/plain", ...lifetime], { env })).status, 0);
    clock.advance(23 * 3600 * 1000);
    const info = await blind.run(["info", "s", "--json"], { env });
    const { ttlSeconds, expiresAt } = JSON.parse(info.stdout);
    assert.equal(ttlSeconds, null);
    assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 3600 * 1000) < 600_000, expiresAt);
    const { status, stdout, stderr } = await blind.run(["export", "s"], { env });
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /"ttlSeconds":86400,"expiresAt":null/);
  });

  test("of a pattern leaves out what was deleted since it was listed", async (t) => {
    for (const name of ["d/1", "d/2", "d/3"]) await server.done(["append", name, "--lines", "--create"], `${name}\n`);
    let deleting: Promise<string> | null = null;
    const { status, stderr, bytes } = await server.run(["export", "d/*"], {
      beforeWritten: async () => void (await (deleting ??= server.done(["rm", "d/2", "--yes"]))),
    });
    assert.equal(status, 0);
    assert.match(stderr, /^streamdir: stream "d\/2": The stream does not exist .*: it is not in the archive\n$/);
    const { stdout } = await new VerbServer(t).run(["import"], { stdin: bytes });
    assert.equal(stdout, "imported  d/1\nimported  d/3\n");
  });

  test("has all of a stream that one answer had, also when it is deleted then", async (t) => {
    for (const name of ["g/1", "g/2"]) await server.done(["append", name, "--lines", "--create"], `${name}\n`);
    let deleting: Promise<string> | null = null;
    const { status, stderr, bytes } = await server.run(["export", "g/*"], {
      // The first write is the opening of g/1.
      beforeWritten: async () => void (await (deleting ??= server.done(["rm", "g/1", "--yes"]))),
    });
    assert.deepEqual([status, stderr], [0, ""]);
    const target = new VerbServer(t);
    assert.equal((await target.run(["import"], { stdin: bytes })).stdout, "imported  g/1\nimported  g/2\n");
    assert.equal(await target.done(["cat", "g/1"]), "g/1\n");
  });

  test("says that the archive is not whole when a longer stream is deleted between its two readings", async (t) => {
    const short = new VerbServer(t, { chunkBytes: 1024 });
    await short.done(["append", "long", "--lines", "--create", "--piece", "1KiB"], "x\n".repeat(2000));
    let deleting: Promise<string> | null = null;
    const { status, stderr } = await short.run(["export", "lo*"], {
      beforeWritten: async () => void (await (deleting ??= short.done(["rm", "long", "--yes"]))),
    });
    assert.equal(status, 66);
    assert.match(stderr, /^streamdir: stream "long": The stream does not exist .*: the archive is not whole\n$/);
  });

  test("of a pattern has forks behind their sources, with what is their own", async (t) => {
    await server.done(["append", "f/z", "--json", "--create"], "1\n22\n333\n");
    await server.done(["fork", "f/z", "f/a", "--skip", "2"]);
    await server.done(["append", "f/a"], "4\n");
    const { bytes } = await server.run(["export", "f/*"]);
    const target = new VerbServer(t);
    const { stdout } = await target.run(["import", "--json"], { stdin: bytes });
    assert.deepEqual(
      stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
      [
        { name: "f/z", bytes: 9, what: "imported", why: null },
        { name: "f/a", bytes: 2, what: "imported", why: null },
      ],
    );
    assert.equal(await target.done(["cat", "f/a"]), "1\n22\n4\n");
    assert.match(await target.done(["info", "f/a"]), /^forked from {5}f\/z$/m);
  });
});
