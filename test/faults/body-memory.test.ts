import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { lacksProc } from "../helpers/platform.js";
import { RawConnection } from "../helpers/raw-connection.js";
import { RealServer } from "../helpers/real-server.js";

const MiB = 1024 * 1024;
const BODY_BYTES = MiB / 2;
/** What a process may take beside a body: as buffers of their own its bytes took 220 MiB. */
const CONSTANT_BYTES = 64 * MiB;

/** The most memory that a process has had, in bytes. */
function peakBytes(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]) * 1024;
}

/** Sends `text` in chunks of one byte each; resolves to the answer's status. */
async function sendByBytes(server: RealServer, name: string, contentType: string, text: string): Promise<number> {
  const { port, pathname } = new URL(`${server.url}${name}`);
  const connection = await RawConnection.open(Number(port));
  connection.write(`POST ${pathname} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${contentType}\r\nTransfer-Encoding: chunked\r\n\r\n`);
  const pieces = 64 * 1024;
  for (let from = 0; from < text.length; from += pieces) {
    const chunks = text.slice(from, from + pieces).replaceAll(/./gs, "1\r\n$&\r\n");
    if (connection.socket.write(chunks, "latin1")) continue;
    await new Promise<void>((resolve) => connection.socket.once("drain", resolve).once("close", resolve));
  }
  connection.write("0\r\n\r\n");
  const { status } = await connection.answer();
  await connection.close();
  return status;
}

// The figures are the kernel's.
describe("the memory for a body that comes byte by byte", { skip: lacksProc }, () => {
  const servers: (() => Promise<void>)[] = [];
  const server = new RealServer({ after: (run) => void servers.push(run) }, []);
  before(() => server.start());
  after(async () => {
    await server.stop();
    for (const end of servers) await end();
  });

  const ones = `[${"1,".repeat(BODY_BYTES / 2)}1]`;
  for (const [title, name, contentType, text, status] of [
    ["an append", "bytes", "text/plain", "x".repeat(BODY_BYTES), 204],
    ["JSON messages", "json", "application/json", ones, 204],
    ["a stream that is not there", "none", "text/plain", "x".repeat(BODY_BYTES), 404],
  ] as const) {
    test(`of ${title} is at most twice its bytes and a constant`, async () => {
      await server.ask("PUT", "bytes", { headers: { "Content-Type": "text/plain" } });
      await server.ask("PUT", "json", { headers: { "Content-Type": "application/json" } });
      const { pid } = server.process;
      const before = peakBytes(pid);
      assert.equal(await sendByBytes(server, name, contentType, text), status);
      const taken = peakBytes(pid) - before;
      assert.ok(taken <= 2 * text.length + CONSTANT_BYTES, `took ${Math.round(taken / MiB)} MiB for ${text.length} bytes`);
    });
  }
});
