import assert from "node:assert/strict";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { createServer } from "../../src/server.js";
import { formatOffset, parseOffset } from "../../src/protocol/offset.js";
import { segmentPath } from "../../src/storage/file/format/layout.js";
import { bytesOf, keptLog } from "../helpers/engine.js";
import { Random } from "../helpers/random.js";
import { tempDir } from "../helpers/temp-dir.js";
import { DAMAGES, type Finding } from "./damages.js";
import { ServedDirectory } from "./served-directory.js";

/** Two appends make a segment; there are three of them. */
const PART_BYTES = 2000;
const SEGMENT_BYTES = 2 * PART_BYTES;
const STARTS = [0, SEGMENT_BYTES, 2 * SEGMENT_BYTES];
const TAIL = 3 * SEGMENT_BYTES;

/** A new seed each time; `CORRUPTION_SEED` replays one. */
function randomOf(context: TestContext): Random {
  const seed = Number(process.env["CORRUPTION_SEED"] ?? Date.now() % 2 ** 32);
  context.diagnostic(`CORRUPTION_SEED=${seed}`);
  return new Random(seed);
}

function contentOf(name: string): Buffer {
  return bytesOf(TAIL, [...name].reduce((sum, letter) => sum * 3 + letter.charCodeAt(0), 0) % 1000);
}

/** A directory with a stream of three segments for each name, all of it in the streams' own files. */
async function directoryWith(names: readonly string[]): Promise<string> {
  const dir = join(tempDir(), "data");
  const server = await createServer({
    dir,
    port: 0,
    fsync: "no",
    segmentBytes: 4096,
    journalBytes: 65536,
    journalBypassBytes: 8192,
    log: keptLog().log,
  });
  for (const name of names) {
    const content = contentOf(name);
    for (let at = 0; at < TAIL; at += PART_BYTES) {
      const method = at === 0 ? "PUT" : "POST";
      const answer = await fetch(`${server.url}${name}`, {
        method,
        headers: { "Content-Type": "application/octet-stream" },
        body: content.subarray(at, at + PART_BYTES),
      });
      assert.ok(answer.ok, `${answer.status}`);
    }
  }
  await server.close();
  return dir;
}

/** Reads a stream with damaged segments from its beginning on: all that is sound comes, and nothing else. */
async function readAround(server: ServedDirectory, name: string, content: Buffer, damaged: readonly number[]): Promise<void> {
  const tail = parseOffset(String((await server.must(200, "HEAD", name)).headers.get("stream-next-offset")));
  const check = tail?.kind === "at" ? tail.check : 0;
  const tokenIn = (start: number, byte: number): string => formatOffset(start, byte, check);
  let at = 0;
  let offset = "-1";
  while (at < content.length) {
    const index = STARTS.findLastIndex((start) => start <= at);
    if (damaged.includes(index) && at < TAIL) {
      for (const from of [offset, tokenIn(STARTS[index] ?? 0, SEGMENT_BYTES - 1), tokenIn(STARTS[index] ?? 0, 1)]) {
        for (const live of ["", "&live=long-poll", "&live=sse"]) {
          const next = await server.mustBeDamaged("GET", `${name}?offset=${from}${live}`);
          assert.equal(next, tokenIn(STARTS[index] ?? 0, SEGMENT_BYTES), `${name}: what follows can be read`);
        }
      }
      at = (STARTS[index] ?? 0) + SEGMENT_BYTES;
      offset = tokenIn(STARTS[index] ?? 0, SEGMENT_BYTES);
      continue;
    }
    const answer = await server.must(200, "GET", `${name}?offset=${offset}`);
    assert.ok(
      answer.body.length > 0 && answer.body.equals(content.subarray(at, at + answer.body.length)),
      `${name}: bytes from ${at} on are those that were written`,
    );
    at += answer.body.length;
    offset = String(answer.headers.get("stream-next-offset"));
  }
}

/** Asks for everything that can be asked of a damaged stream; `content` is what it holds by now. Appends where that is taken. */
async function exercise(server: ServedDirectory, name: string, finding: Finding, content: Buffer): Promise<Buffer> {
  if (finding.kind === "sidecar") {
    for (const query of [
      "",
      "?offset=-1",
      "?offset=now",
      `?offset=${formatOffset(0, 1, 0)}`,
      "?offset=-1&live=long-poll",
      "?offset=now&live=sse",
    ]) {
      await server.mustBeDamaged("GET", `${name}${query}`);
    }
    await server.mustBeDamaged("HEAD", name);
    await server.mustBeDamaged("PUT", name);
    await server.mustBeDamaged("POST", name, "more");
    return content;
  }
  const damaged = finding.kind === "segments" ? finding.indexes : [];
  await readAround(server, name, content, damaged);
  assert.equal((await server.must(200, "GET", `${name}?offset=now`)).body.length, 0);
  const tail = (await server.must(200, "HEAD", name)).headers.get("stream-next-offset");
  await server.must(200, "PUT", name, "");
  await server.must(204, "POST", name, "more");
  assert.equal(String((await server.must(200, "GET", `${name}?offset=${tail}`)).body), "more");
  return Buffer.concat([content, Buffer.from("more")]);
}

function assertLogged(log: readonly Record<string, unknown>[], server: ServedDirectory, name: string, finding: Finding): void {
  const lines = log.filter(({ stream }) => stream === name);
  const wanted = finding.kind === "segments" ? finding.indexes.length : finding.kind === "sidecar" ? 1 : 0;
  assert.equal(lines.length, wanted, `${name}: ${JSON.stringify(lines)}`);
  if (finding.kind === "none") return;
  for (const [index, { file, problem, offset }] of lines.entries()) {
    assert.match(String(problem), finding.problem);
    if (finding.kind !== "segments") continue;
    assert.equal(file, segmentPath(server.layout.streamDirectory(name), STARTS[finding.indexes[index] ?? 0] ?? 0));
    if (finding.offset !== undefined) assert.equal(offset, finding.offset);
  }
}

test("damage to the files of streams at rest is found, named and never served, and the rest serves", async (context) => {
  const random = randomOf(context);
  const names = Object.keys(DAMAGES);
  const dir = await directoryWith(["twin", "good", ...names]);
  const server = new ServedDirectory(context, dir);
  const contents = new Map(names.map((name) => [name, contentOf(name)]));
  const findings = names.map((name) => {
    const [directory, twin] = [server.layout.streamDirectory(name), server.layout.streamDirectory("twin")];
    return { name, finding: DAMAGES[name]?.({ directory, twin, starts: STARTS, tail: TAIL, random }) ?? { kind: "none" as const } };
  });
  let good = contentOf("good");

  for (const end of ["SIGTERM", "SIGKILL", "SIGTERM"] as const) {
    await server.start();
    for (const { name, finding } of findings)
      contents.set(name, await exercise(server, name, finding, contents.get(name) ?? Buffer.alloc(0)));
    await server.must(204, "POST", "good", "more");
    good = Buffer.concat([good, Buffer.from("more")]);
    assert.ok((await server.must(200, "GET", "good")).body.equals(good));
    const log = await server.end(end);
    for (const { name, finding } of findings) assertLogged(log, server, name, finding);
    assert.equal(
      log.length,
      findings.reduce(
        (sum, { finding }) => sum + (finding.kind === "segments" ? finding.indexes.length : finding.kind === "sidecar" ? 1 : 0),
        0,
      ),
      "nothing else is logged",
    );
  }

  const verified = await server.verify();
  assert.equal(verified.status, 1, verified.stderr);
  // It goes through the shards in order, and ends at what is no file at all.
  const isReadable = ({ name }: { readonly name: string }): boolean => !/-is-|-itself$/.test(name);
  await server.start();
  for (const { name } of findings.filter((found) => !isReadable(found))) await server.must(204, "DELETE", name);
  await server.end("SIGTERM");
  const named = await server.verify();
  assert.equal(named.status, 1, named.stderr);
  for (const { name, finding } of findings.filter(isReadable)) {
    assert.equal(named.stdout.includes(`${server.layout.streamDirectory(name)}/`), finding.kind !== "none", `${name}: ${named.stdout}`);
  }

  await server.start();
  for (const name of names) {
    await server.ask("DELETE", name);
    await server.must(404, "GET", name);
    await server.must(404, "DELETE", name);
    await server.must(201, "PUT", name, "new");
  }
  for (const end of ["SIGKILL", "SIGTERM"] as const) {
    for (const name of names) assert.equal(String((await server.must(200, "GET", name)).body), "new");
    const log = await server.end(end);
    // Those that were deleted without having been read were found damaged then.
    assert.ok(end === "SIGKILL" ? log.every(({ msg }) => msg === "a stream is damaged") : log.length === 0, JSON.stringify(log));
    await server.start();
  }
  await server.end("SIGTERM");
  const mended = await server.verify();
  assert.equal(mended.status, 0, mended.stdout);
});
