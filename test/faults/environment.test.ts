import assert from "node:assert/strict";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { decodeSidecar } from "../../src/storage/file/format/sidecar.js";
import { sidecarPath } from "../../src/storage/file/format/layout.js";
import { bytesOf } from "../helpers/engine.js";
import { AS_NOBODY, lacksUsers } from "../helpers/machine.js";
import { tempDir } from "../helpers/temp-dir.js";
import { ServedDirectory } from "./served-directory.js";

/** The user that {@link AS_NOBODY} is. */
const NOBODY = 65534;

/** What the environment does to the streams of these directories; returns what ends it. */
type Trouble = (directories: readonly string[]) => () => void;

/** Something in the way of each, and out of it again. */
function obstacles(place: (directory: string) => string): Trouble {
  return (directories) => {
    for (const directory of directories) mkdirSync(join(place(directory), "in the way"), { recursive: true });
    return () => {
      for (const directory of directories) rmSync(place(directory), { recursive: true });
    };
  };
}

/** Each file that `chosen` names is somebody else's for a while. */
function forbidden(chosen: (directory: string) => readonly string[]): Trouble {
  return (directories) => {
    const paths = directories.flatMap(chosen);
    for (const path of paths) {
      chownSync(path, 0, 0);
      chmodSync(path, 0o700);
    }
    return () => {
      for (const path of paths) chownSync(path, NOBODY, NOBODY);
    };
  };
}

const segmentsIn = (directory: string): string[] =>
  readdirSync(directory)
    .filter((name) => name.endsWith(".seg"))
    .map((name) => join(directory, name));

const TROUBLES: Readonly<Record<string, Trouble>> = {
  "an obstacle in the place of the next sidecar": obstacles((directory) => `${sidecarPath(directory)}.new`),
  "a segment that may not be opened": forbidden(segmentsIn),
  "a sidecar and segments that may not be opened": forbidden((directory) => [sidecarPath(directory), ...segmentsIn(directory)]),
  "a directory that may not be entered": forbidden((directory) => [directory]),
  "a directory that is away, with a file in its place": (directories) => {
    for (const directory of directories) {
      renameSync(directory, `${directory}.away`);
      writeFileSync(directory, "in the way");
    }
    return () => {
      for (const directory of directories) {
        rmSync(directory);
        renameSync(`${directory}.away`, directory);
      }
    };
  },
};

const COUNT = 12;
const NAMES = Array.from({ length: COUNT }, (_, index) => `s${index}`);
/** Those that are deleted while they are in trouble. */
const GONE = ["s3", "s7"];

/** A server of another user than root, with streams that are in their own files, none of which is open. */
async function servedAsNobody(context: TestContext): Promise<ServedDirectory> {
  const home = tempDir();
  chownSync(home, NOBODY, NOBODY);
  const server = new ServedDirectory(context, join(home, "data"), AS_NOBODY);
  await server.start();
  await server.must(201, "PUT", "good", "good,");
  for (const name of NAMES) await server.must(201, "PUT", name, `${name} in files,`);
  await server.end("SIGTERM");
  await server.start();
  return server;
}

/** Appends until the journal has been checkpointed a few times. */
async function turnJournal(server: ServedDirectory): Promise<void> {
  for (let count = 0; count < 40; count += 1) await server.must(204, "POST", "good", bytesOf(6000, 1));
}

/** Appends to all while it lasts; the server goes on, and all that were in trouble say so. */
async function sufferTrouble(server: ServedDirectory, trouble: Trouble, untouched: readonly string[] = []): Promise<void> {
  const names = NAMES.filter((name) => !untouched.includes(name));
  for (const name of NAMES) await server.must(204, "POST", name, " acknowledged");
  const end = trouble(names.map((name) => server.layout.streamDirectory(name)));
  await turnJournal(server);
  for (const name of names) await server.mustBeDamaged("GET", name);
  for (const name of names) await server.mustBeDamaged("POST", name, "more");
  await turnJournal(server);
  end();
}

async function assertAllThere(server: ServedDirectory, names: readonly string[]): Promise<void> {
  for (const name of names) {
    assert.equal(String((await server.must(200, "GET", name)).body), `${name} in files, acknowledged`);
    await server.must(204, "POST", name, ", and more");
    assert.equal(String((await server.must(200, "GET", name)).body), `${name} in files, acknowledged, and more`);
  }
}

/** Nothing is left of the trouble, on disk either. */
async function assertOver(server: ServedDirectory): Promise<void> {
  const { status, stdout } = await server.verify();
  assert.deepEqual([status, stdout.replace(/\d+/g, "N")], [0, "nothing wrong in N streams, N journal files, N bytes\n"]);
  assert.deepEqual(
    readdirSync(server.layout.journal).filter((name) => name.includes(".kept")),
    [],
  );
  for (const name of NAMES) {
    const directory = server.layout.streamDirectory(name);
    if (existsSync(directory))
      assert.deepEqual(
        readdirSync(directory).filter((file) => !/^(meta\.json|\d{16}\.seg)$/.test(file)),
        [],
        name,
      );
  }
}

describe("trouble that was the environment's ends with it", { skip: lacksUsers }, () => {
  for (const [what, trouble] of Object.entries(TROUBLES)) {
    test(`${what}: at the next start everything acknowledged is there`, async (context) => {
      const server = await servedAsNobody(context);
      await sufferTrouble(server, trouble);
      for (const name of GONE) await server.must(204, "DELETE", name);
      for (const end of ["SIGKILL", "SIGTERM"] as const) {
        await server.end(end);
        await server.start();
        for (const name of GONE) await server.must(404, "GET", name);
      }
      await assertAllThere(
        server,
        NAMES.filter((name) => !GONE.includes(name)),
      );
      await turnJournal(server);
      for (const name of GONE) await server.must(404, "GET", name);
      assert.deepEqual(await server.end("SIGTERM"), []);
      await assertOver(server);
    });

    test(`${what}: a repair brings everything acknowledged back, and nothing that was deleted`, async (context) => {
      const server = await servedAsNobody(context);
      await sufferTrouble(server, trouble);
      for (const name of GONE) await server.must(204, "DELETE", name);
      await server.end("SIGKILL");
      const { status, stdout, stderr } = await server.repair();
      assert.equal(status, 0, `${stdout}${stderr}`);
      assert.match((await server.repair()).stdout, /^nothing to repair\n$/);
      await assertOver(server);
      await server.start();
      await assertAllThere(
        server,
        NAMES.filter((name) => !GONE.includes(name)),
      );
      for (const name of GONE) await server.must(404, "GET", name);
      assert.deepEqual(await server.end("SIGTERM"), []);
      await assertOver(server);
    });
  }

  test("while it lasts over a restart and a repair, nothing is lost and nothing else suffers", async (context) => {
    const server = await servedAsNobody(context);
    for (const name of NAMES) await server.must(204, "POST", name, " acknowledged");
    const end = forbidden(segmentsIn)(NAMES.map((name) => server.layout.streamDirectory(name)));
    for (const signal of ["SIGKILL", "SIGTERM"] as const) {
      await turnJournal(server);
      for (const name of NAMES) await server.mustBeDamaged("GET", name);
      await server.end(signal);
      if (signal === "SIGTERM") assert.equal((await server.repair()).status, 1);
      await server.start();
    }
    await server.end("SIGTERM");
    end();
    await server.start();
    await assertAllThere(server, NAMES);
    await server.end("SIGTERM");
    await assertOver(server);
  });

  test("a stream that has no files yet is not lost to what is in their way", async (context) => {
    const server = await servedAsNobody(context);
    for (const name of ["new", "empty"]) {
      await server.must(201, "PUT", name, name === "new" ? "acknowledged" : "");
      writeFileSync(server.layout.streamDirectory(name), "in the way");
    }
    await turnJournal(server);
    await server.end("SIGKILL");
    for (const name of ["new", "empty"]) rmSync(server.layout.streamDirectory(name));
    await server.start();
    assert.equal(String((await server.must(200, "GET", "new")).body), "acknowledged");
    assert.equal(String((await server.must(200, "GET", "empty")).body), "");
    await server.end("SIGTERM");
    await assertOver(server);
  });
});

test("a notice that can't be written leaves the sidecar where it is", { skip: lacksUsers }, async (context) => {
  const server = await servedAsNobody(context);
  const directory = server.layout.streamDirectory("s0");
  await sufferTrouble(
    server,
    obstacles((place) => `${sidecarPath(place)}.new`),
    NAMES.slice(1),
  );
  assert.equal(decodeSidecar(readFileSync(sidecarPath(directory))).kind, "sound");
  await server.end("SIGKILL");
});
