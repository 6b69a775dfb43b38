import assert from "node:assert/strict";
import test, { after, describe } from "node:test";
import { runClient, VerbServer } from "../../../helpers/client-verb.js";
import { serverAt } from "../../../helpers/server-at.js";

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

  test("waits for a stream that is not there yet, and prints it from its beginning", async () => {
    const lone = await server.run(["tail", "awaited", "-f"]);
    assert.deepEqual([lone.status, lone.stdout], [66, ""]);
    assert.match(lone.stderr, /stream "awaited": .*\(stream-not-found\); --wait 1m waits for it\n$/);
    let making: Promise<void> | null = null;
    const { status, stdout, stderr } = await server.run(["tail", "awaited", "-f", "-n", "1", "--wait", "1h"], {
      onStderr() {
        making ??= stream("awaited", 3).then(async () => void (await server.done(["close", "awaited"])));
        return null;
      },
    });
    assert.deepEqual([status, stdout], [0, numbers(1, 3)]);
    assert.match(stderr, /\(stream-not-found\); trying again\n.* has it now\n$/);
    await making;
  });

  for (const [name, expected] of [
    ["SIGHUP", 129],
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    test(`ends with ${expected} at ${name}`, async () => {
      await stream(name, 1);
      let interrupt = (): void => {};
      const { status, stdout, stderr } = await server.run(["tail", name, "-f"], {
        onStart: (signal) => (interrupt = () => signal(name)),
        onStdout: () => (setImmediate(() => setImmediate(interrupt)), null),
      });
      assert.deepEqual([status, stdout, stderr], [expected, "1\n", ""]);
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
    assert.match(stderr, /\(offset-gone\); the earliest that is left is \d{16}_\d{16}\n$/);
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

  test("prints the last lines of text, however they were appended", async () => {
    await server.done(["append", "text", "--lines", "--create"], numbers(1, 5000));
    assert.equal(await server.done(["tail", "text"]), numbers(4991, 5000));
    assert.equal(await server.done(["tail", "text", "-n", "1"]), "5000\n");
    assert.equal(await server.done(["tail", "text", "-n", "9000"]), numbers(1, 5000));
    const { offset, data } = JSON.parse(await server.done(["tail", "text", "-n", "2", "--json"]));
    assert.equal(data, numbers(4999, 5000));
    await server.done(["append", "text", "--lines"], numbers(5001, 5003));
    assert.equal(await server.done(["tail", "text", "-n", "4"]), numbers(5000, 5003));
    assert.equal(await server.done(["tail", "text", "--from", offset]), numbers(5001, 5003));
  });

  test("finds the last lines in many answers", async () => {
    const line = `${"x".repeat(1023)}\n`;
    await server.done(["append", "large", "--lines", "--create"], `${line.repeat(12 * 1024)}the\nend\n`);
    assert.equal(await server.done(["tail", "large", "-n", "20"]), `${line.repeat(18)}the\nend\n`);
  });

  test("follows text after its last lines", async () => {
    await server.done(["append", "followed-text", "--lines", "--create"], numbers(1, 100));
    let seen = "";
    const { status } = await server.run(["tail", "followed-text", "-f", "-n", "2"], {
      onStdout: (text) => {
        seen += String(text);
        if (seen === numbers(99, 100)) void server.done(["append", "followed-text", "--lines", "--close"], numbers(101, 103));
        return null;
      },
    });
    assert.deepEqual([status, seen], [0, numbers(99, 103)]);
  });

  test("prints the last appends of bytes that are no text", async () => {
    await server.done(["append", "bytes", "--create"], "a\nb\n");
    await server.done(["append", "bytes"], "c\nd\n");
    assert.equal(await server.done(["tail", "bytes", "-n", "1"]), "c\nd\n");
  });

  test("prints the last lines of a server that does not know ?last=", async (t) => {
    const url = await serverAt(t, (_, res) => {
      res.setHeader("Content-Type", "text/plain").setHeader("Stream-Next-Offset", "1").setHeader("ETag", '"1"');
      res.setHeader("Stream-Up-To-Date", "true").end(numbers(1, 100));
    });
    assert.equal((await runClient(["tail", "a", "-n", "3"], { url })).stdout, numbers(98, 100));
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
