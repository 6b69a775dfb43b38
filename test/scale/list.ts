import assert from "node:assert/strict";
import { join } from "node:path";
import type { Figure, Setting } from "./figure.js";
import { creationBytes } from "./load.js";
import { toEach } from "./memory.js";
import { ServerUnderLoad } from "./server-under-load.js";

const PAGE_STREAMS = 100;
const MAX_FIRST_PAGE_MS = 50;

/** How long the first page of the list takes, of all streams: at once after a start, and while the server runs. */
export async function measureList({ scope, root, streams, rounds }: Setting): Promise<Figure[]> {
  const dir = join(root, "list");
  let server = await ServerUnderLoad.start(scope, dir);
  // What the client does at its first request is not the server's.
  await (await fetch(`http://127.0.0.1:${server.port}/livez`)).text();
  await toEach(server, streams, creationBytes);
  const running = await firstPageMs(server);
  const after = { SIGKILL: 0, SIGTERM: 0 };
  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    for (let round = 0; round < rounds; round += 1) {
      await server.end(signal);
      server = await ServerUnderLoad.start(scope, dir);
      after[signal] = Math.max(after[signal], await firstPageMs(server));
    }
  }
  await server.end("SIGKILL");
  const figureOf = (when: string, measured: number): Figure => ({
    what: `first page of ${streams} streams, ${when}`,
    measured,
    unit: "ms",
    goal: MAX_FIRST_PAGE_MS,
  });
  const worst = `slowest of ${rounds}`;
  return [
    figureOf("while the server runs", running),
    figureOf(`after kill -9, ${worst}`, after.SIGKILL),
    figureOf(`after a clean stop, ${worst}`, after.SIGTERM),
  ];
}

async function firstPageMs({ port }: ServerUnderLoad): Promise<number> {
  const startedMs = performance.now();
  const answer = await fetch(`http://127.0.0.1:${port}/v1/stream/__ds/streams?limit=${PAGE_STREAMS}`);
  const page = (await answer.json()) as { readonly streams: readonly unknown[] };
  const ms = performance.now() - startedMs;
  assert.equal(page.streams.length, PAGE_STREAMS);
  return ms;
}
