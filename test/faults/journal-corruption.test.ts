import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { append, bytesOf, copyOf, crash, created, loaded, openEngine, readAll } from "../helpers/engine.js";
import { startStreamdir } from "../helpers/process.js";
import { Random } from "../helpers/random.js";
import { Barrier } from "../helpers/watched-files.js";
import { flipBit } from "./damages.js";
import { framesOf, JOURNAL_DAMAGES, journalFilesOf } from "./journal-damages.js";

const NAMES = ["one", "two"];
/** A new seed each time; `CORRUPTION_SEED` replays one. */
const SEED = Number(process.env["CORRUPTION_SEED"] ?? Date.now() % 2 ** 32);

/** What kill -9 leaves of a server whose checkpoints did not end: at least three journal files. */
async function journaledDirectory(): Promise<{ dir: string; contents: Map<string, Buffer> }> {
  const engine = await openEngine();
  engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? new Barrier().opened : undefined);
  const contents = new Map<string, Buffer>();
  for (const name of NAMES) contents.set(name, (await created(engine.storage, name, ""), Buffer.alloc(0)));
  for (let index = 0; journalFilesOf(engine.dir).length < 3 || framesOf(journalFilesOf(engine.dir).at(-1) ?? "").length < 4; index += 1) {
    const name = NAMES[index % 2] ?? "";
    const part = bytesOf(700, index);
    assert.equal(await append(engine.storage, await loaded(engine.storage, name), part), "durable");
    contents.set(name, Buffer.concat([contents.get(name) ?? part, part]));
  }
  return { dir: await crash(engine), contents };
}

describe("damage to the journal is found, named and never served", { concurrency: 2 }, () => {
  let sound: { dir: string; contents: Map<string, Buffer> };
  let foreign: readonly string[];
  before(async () => {
    sound = await journaledDirectory();
    foreign = journalFilesOf((await journaledDirectory()).dir);
  });

  for (const [index, [what, harm]] of Object.entries(JOURNAL_DAMAGES).entries()) {
    test(what, async (context) => {
      context.diagnostic(`CORRUPTION_SEED=${SEED}`);
      const dir = copyOf(sound.dir);
      const { file, offset, problem } = harm({ dir, files: journalFilesOf(dir), foreign, random: new Random(SEED + index) });
      const snapshot = journalFilesOf(dir).map((path) => contentOf(path));
      const { status, stdout, stderr } = await startStreamdir(context, [dir, "--port", "0"]).ended;
      assert.deepEqual([status, stdout], [1, ""], stderr);
      assert.equal(stderr.trimEnd().split("\n").length, 1, stderr);
      assert.ok(what === "a damaged marker" || stderr.includes(file), stderr);
      assert.match(stderr, problem);
      if (offset !== undefined) assert.match(stderr, new RegExp(`at byte ${offset}\\b`));
      await assert.rejects(
        openEngine({ dir }),
        (error: Error) => stderr === `streamdir: ${error.message}\n`,
        "another start says the same",
      );
      assert.ok(!existsSync(join(dir, "lock")), "a refused start gives the directory back");
      assert.deepEqual(
        journalFilesOf(dir).map((path) => contentOf(path)),
        snapshot,
        "the journal is kept as it is",
      );
      const verified = await startStreamdir(context, ["verify", dir]).ended;
      assert.equal(verified.status, 1, verified.stdout);
    });
  }

  test("a copy of a file under a later name disturbs nothing", async () => {
    const dir = copyOf(sound.dir);
    const [first = ""] = journalFilesOf(dir);
    copyFileSync(first, join(dir, "journal", "0000000000000099.journal"));
    await assertServes(dir, sound.contents);
  });

  test("the very last frame, damaged, is taken for a torn one: what came before it is served", async () => {
    const dir = copyOf(sound.dir);
    const last = journalFilesOf(dir).at(-1) ?? "";
    const { offset, length } = framesOf(last).at(-1) ?? { offset: 0, length: 0 };
    flipBit(last, new Random(SEED), offset, offset + length);
    const engine = await openEngine({ dir });
    const found = await Promise.all(NAMES.map(async (name) => readAll(engine.storage, await loaded(engine.storage, name))));
    const lost = NAMES.filter((name, index) => !found[index]?.equals(sound.contents.get(name) ?? Buffer.alloc(0)));
    assert.equal(lost.length, 1);
    for (const [index, name] of NAMES.entries())
      assert.ok(
        sound.contents
          .get(name)
          ?.subarray(0, found[index]?.length)
          .equals(found[index] ?? Buffer.alloc(1)),
        "what is there is what was written",
      );
    await engine.storage.close();
  });
});

describe("a journal that lost what came last", () => {
  for (const [what, harm] of [
    ["its last file", (files: readonly string[]) => rmSync(files.at(-1) ?? "")],
    [
      "the end of its last file",
      (files: readonly string[]) => truncateSync(files.at(-1) ?? "", framesOf(files.at(-1) ?? "")[1]?.offset ?? 0),
    ],
  ] as const) {
    test(`(${what}) is found by every stream whose own files are newer`, async (t) => {
      const engine = await openEngine();
      const stream = await created(engine.storage, "newer", "0");
      await created(engine.storage, "older", "kept");
      for (
        let index = 0;
        journalFilesOf(engine.dir).length < 2 || framesOf(journalFilesOf(engine.dir).at(-1) ?? "").length < 4;
        index += 1
      ) {
        engine.files.gate = ({ kind, path }) =>
          kind === "unlink" || (kind === "rename" && path.includes("journal")) ? new Barrier().opened : undefined;
        await append(engine.storage, stream, bytesOf(1500, index));
      }
      await engine.storage.persist(stream);
      const dir = await crash(engine);
      harm(journalFilesOf(dir));
      const again = await openEngine({ dir });
      t.after(() => again.storage.close());
      await assert.rejects(again.storage.load("newer"), /meta\.json: it is of batch \d+, but the journal ends with batch \d+/);
      assert.equal(String(await readAll(again.storage, await loaded(again.storage, "older"))), "kept");
    });
  }
});

function contentOf(path: string): string {
  try {
    return readFileSync(path).toString("base64");
  } catch {
    return readdirSync(path).join();
  }
}

async function assertServes(dir: string, contents: ReadonlyMap<string, Buffer>): Promise<void> {
  const engine = await openEngine({ dir });
  for (const [name, content] of contents) assert.ok((await readAll(engine.storage, await loaded(engine.storage, name))).equals(content));
  await engine.storage.close();
}
