import assert from "node:assert/strict";
import test, { after, describe } from "node:test";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after });
const numbers = (from: number, to: number): string => Array.from({ length: to - from + 1 }, (_, at) => `${from + at}\n`).join("");

/** A stream of the numbers from 1. */
async function stream(name: string, count: number): Promise<void> {
  await server.done(["append", name, "--json", "--create"], numbers(1, count));
}

describe("streamdir tail", () => {
  test("prints the last ten messages, or as many as are asked for", async () => {
    await stream("ten", 25);
    assert.equal(await server.done(["tail", "ten"]), numbers(16, 25));
    assert.equal(await server.done(["tail", "ten", "-n", "3"]), numbers(23, 25));
    assert.equal(await server.done(["tail", "ten", "-n", "0"]), "");
    assert.equal(await server.done(["tail", "ten", "-n", "1000"]), numbers(1, 25));
  });

  test("prints nothing of an empty stream", async () => {
    await server.done(["create", "empty", "--type", "application/json"]);
    assert.equal(await server.done(["tail", "empty"]), "");
  });

  test("begins at an offset that --json has printed", async () => {
    await stream("offsets", 2);
    const [, last = ""] = (await server.done(["tail", "offsets", "--json"])).split("\n");
    const { offset, data } = JSON.parse(last);
    assert.equal(data, 2);
    await server.done(["append", "offsets"], "3\n");
    assert.equal(await server.done(["tail", "offsets", "--from", offset]), "3\n");
  });

  test("follows until the stream is closed", async () => {
    await stream("followed", 2);
    let seen = "";
    const closing = new Promise<void>((resolve) => {
      void server
        .run(["tail", "followed", "-f"], {
          onStdout: (text) => {
            seen += String(text);
            if (seen === numbers(1, 2)) void server.done(["append", "followed"], numbers(3, 4));
            if (seen === numbers(1, 4)) void server.done(["close", "followed"]);
            return null;
          },
        })
        .then(({ status }) => (assert.equal(status, 0), resolve()));
    });
    await closing;
    assert.equal(seen, numbers(1, 4));
  });

  test("ends with 130 at SIGINT", async () => {
    await stream("interrupted", 1);
    let interrupt = (): void => {};
    const { status, stdout, stderr } = await server.run(["tail", "interrupted", "-f"], {
      onStart: (signal) => (interrupt = () => signal("SIGINT")),
      onStdout: () => (setImmediate(() => setImmediate(interrupt)), null),
    });
    assert.deepEqual([status, stdout, stderr], [130, "1\n", ""]);
  });

  test("ends with 0 when its reader has gone", async () => {
    await stream("piped", 1);
    const gone = Object.assign(new Error("EPIPE"), { code: "EPIPE" });
    const { status, stderr } = await server.run(["tail", "piped", "-f"], { onStdout: () => gone });
    assert.deepEqual([status, stderr], [0, ""]);
  });

  test("ends with 66 when the stream is deleted meanwhile", async () => {
    await stream("deleted", 1);
    const { status, stderr } = await server.run(["tail", "deleted", "-f"], {
      onStdout: () => (void server.done(["rm", "deleted", "--yes"]), null),
    });
    assert.equal(status, 66);
    assert.match(stderr, /^streamdir: stream "deleted": The stream does not exist \(stream-not-found\)\n$/);
  });

  test("refuses an offset of a stream that had its name before", async () => {
    await stream("anew", 3);
    const [, , last = ""] = (await server.done(["tail", "anew", "--json"])).split("\n");
    await server.done(["rm", "anew", "--yes"]);
    await server.done(["append", "anew", "--json", "--create"], "7\n");
    const { status, stderr } = await server.run(["tail", "anew", "-f", "--from", JSON.parse(last).offset]);
    assert.equal(status, 65);
    assert.match(stderr, /\(offset-gone\)\n$/);
  });

  test("goes on at the beginning of a stream that takes its name while it follows", async () => {
    await stream("taken", 2);
    const swap = async (): Promise<void> => {
      await server.done(["rm", "taken", "--yes"]);
      await server.done(["append", "taken", "--json", "--create", "--close"], "7\n");
    };
    let isSwapped = false;
    // Each write is taken once the streams are swapped, so that no read comes between the two.
    const { status, stdout, stderr } = await server.run(["tail", "taken", "-f"], {
      beforeWritten: async () => {
        if (!isSwapped) await swap();
        isSwapped = true;
      },
    });
    assert.deepEqual([status, stdout], [0, "1\n2\n7\n"], stderr);
    assert.match(stderr, /\(offset-gone\): going on at the earliest that is left, /);
  });

  for (const [args, line] of [
    [["-n", "1", "--from", "now"], /only one of --lines, --since and --from/],
    [["--since", "yesterday"], /--since must be like 1h or 2026-01-31T12:00:00Z, not "yesterday"/],
    [["-n", "x"], /-n must be a whole number, not "x"/],
    [["-n", "1000001"], /--lines must be at most 1000000/],
  ] as const)
    test(`refuses ${args.join(" ")}`, async () => {
      const { status, stderr } = await server.run(["tail", "ten", ...args]);
      assert.equal(status, 64);
      assert.match(stderr, line);
    });
});
