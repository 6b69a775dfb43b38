import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, test } from "node:test";
import { listenOn, MAX_SOCKET_PATH_BYTES, probe } from "../../../../src/storage/file/disk/sockets.js";
import { startNode } from "../../../helpers/process.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const SOCKETS = fileURLToPath(new URL("../../../../src/storage/file/disk/sockets.ts", import.meta.url));
const TSX = import.meta.resolve("tsx");

/** A program that listens on a socket at `path`, and then does `more`. */
function listening(path: string, more: string): string[] {
  const program = `
    const { listenOn } = await import(${JSON.stringify(SOCKETS)});
    await listenOn(${JSON.stringify(path)}, () => undefined);
    ${more}`;
  return ["--import", TSX, "--input-type=module", "-e", program];
}

describe("a socket", () => {
  test("answers while it is listened on, then refuses, then is missing", async () => {
    const path = join(tempDir(), "a");
    assert.equal(await probe(path), "missing");
    assert.equal(await probe(join(path, "below")), "missing");
    const greeted: Socket[] = [];
    const listener = await listenOn(path, (connection) => void greeted.push(connection));
    assert.equal(await probe(path), "answers");
    await listener.close();
    writeFileSync(path, "");
    assert.equal(await probe(path), "refuses");
  });

  test("that its process has left behind refuses, also while a child of that process lives", async (t) => {
    const path = join(tempDir(), "a");
    const more = `
      const { spawn } = await import("node:child_process");
      const child = spawn("sleep", ["60"], { stdio: "ignore" });
      child.once("spawn", () => console.log(child.pid));`;
    const listens = startNode(t, listening(path, more));
    const child = Number(await listens.stdoutLine(/^\d+$/));
    t.after(() => process.kill(child, "SIGKILL"));
    assert.equal(await probe(path), "answers");
    listens.kill("SIGKILL");
    await listens.ended;
    assert.equal(process.kill(child, 0), true);
    assert.equal(await probe(path), "refuses");
    assert.ok(existsSync(path));
  });

  test(
    "of a process that is stopped answers, also when no more connections can wait for it",
    { skip: process.platform !== "linux" && "others refuse what can't wait" },
    async (t) => {
      const path = join(tempDir(), "a");
      const listens = startNode(t, listening(path, 'console.log("listens"); setInterval(() => {}, 1000)'));
      await listens.stdoutLine(/listens/);
      listens.kill("SIGSTOP");
      const waiting: Socket[] = [];
      for (let failed = ""; failed === "";) {
        assert.ok(waiting.length < 10_000, "there is a limit");
        const connection = connect(path);
        waiting.push(connection);
        failed = await new Promise<string>((resolve) => {
          connection.once("connect", () => resolve("")).once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "none"));
        });
        if (failed !== "") assert.equal(failed, "EAGAIN");
      }
      assert.equal(await probe(path), "answers");
      for (const connection of waiting) connection.destroy();
    },
  );

  test("keeps no process alive, nor does who has connected to it", async (t) => {
    const path = join(tempDir(), "a");
    const more = `
      const { connect } = await import("node:net");
      const connection = connect(${JSON.stringify(path)});
      await new Promise((resolve) => connection.once("connect", resolve));
      connection.unref();
      console.log("connected");`;
    const { status, stdout } = await startNode(t, listening(path, more)).ended;
    assert.deepEqual([status, stdout], [0, "connected\n"]);
  });

  test("is the worker's own in a cluster: the primary holds none of it", async (t) => {
    const path = join(tempDir(), "a");
    const program = `
      const { default: cluster } = await import("node:cluster");
      if (cluster.isPrimary) {
        const worker = cluster.fork();
        worker.on("message", () => worker.process.kill("SIGKILL"));
        worker.on("exit", () => console.log("ended"));
        setInterval(() => {}, 1000);
      } else {
        const { listenOn } = await import(${JSON.stringify(SOCKETS)});
        await listenOn(${JSON.stringify(path)}, () => undefined);
        process.send("listens");
      }`;
    const file = join(tempDir(), "cluster.mjs");
    writeFileSync(file, program);
    const primary = startNode(t, ["--import", TSX, file]);
    await primary.stdoutLine(/ended/);
    assert.ok(["refuses", "missing"].includes(await probe(path)));
  });

  test("takes sixteen connections at a time; those beyond are closed, and still know that somebody is there", async () => {
    const path = join(tempDir(), "a");
    const served: Socket[] = [];
    const listener = await listenOn(path, (connection) => void served.push(connection));
    const clients = Array.from({ length: 16 }, () => connect(path));
    await Promise.all(clients.map((client) => once(client, "connect")));
    while (served.length < 16) await new Promise((resolve) => setImmediate(resolve));
    const late = connect(path).resume();
    await once(late, "close");
    assert.equal(await probe(path), "answers");
    assert.equal(served.length, 16);
    const closed = clients.map((client) => once(client.resume(), "close"));
    await listener.close();
    await Promise.all(closed);
  });

  test("that is in the way, or can't be made, is an error", async () => {
    const dir = tempDir();
    writeFileSync(join(dir, "a"), "");
    await assert.rejects(
      listenOn(join(dir, "a"), () => undefined),
      { code: "EADDRINUSE" },
    );
    const long = join(dir, "a".repeat(MAX_SOCKET_PATH_BYTES));
    await assert.rejects(
      listenOn(long, () => undefined),
      { code: "ENAMETOOLONG" },
    );
    await assert.rejects(probe(long), { code: "ENAMETOOLONG" });
  });
});
