import { join } from "node:path";
import type { Figure, Setting } from "./figure.js";
import { Load, requestBytes } from "./load.js";
import { pathOf, toEach } from "./memory.js";
import { pause, ServerUnderLoad } from "./server-under-load.js";

const STREAMS = 200;
const TTL_SECONDS = 6;

/** Streams that a reader kept alive shortly before kill -9, and that were gone before their time after the restart. */
export async function measureKeptReads({ scope, root, rounds }: Setting): Promise<Figure[]> {
  let gone = 0;
  let asked = 0;
  for (let round = 0; round < rounds; round += 1) {
    const dir = join(root, `kept-${round}`);
    let server = await ServerUnderLoad.start(scope, dir);
    await toEach(server, STREAMS, (path) =>
      requestBytes("PUT", path, { "Content-Type": "text/plain", "Stream-TTL": String(TTL_SECONDS) }, "x"),
    );
    await pause(TTL_SECONDS * 500);
    const readMs = Date.now();
    // Twice: the second read comes too soon to be noted.
    for (let time = 0; time < 2; time += 1) await toEach(server, STREAMS, (path) => requestBytes("GET", `${path}?offset=-1`));
    await server.end("SIGKILL");
    server = await ServerUnderLoad.start(scope, dir);
    await pause(readMs + TTL_SECONDS * 900 - Date.now());
    const load = await Load.open(server.port, 8);
    const { statuses } = await load.run((index) => (index < STREAMS ? requestBytes("HEAD", pathOf(index)) : null));
    load.close();
    if (Date.now() > readMs + TTL_SECONDS * 1000) continue; // too slow a machine to tell
    asked += STREAMS;
    gone += statuses.get(404) ?? 0;
    await server.end("SIGKILL");
  }
  return [{ what: `streams gone early after kill -9, of ${asked} read before it`, measured: gone, unit: "", goal: 0 }];
}
