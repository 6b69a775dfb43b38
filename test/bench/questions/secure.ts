import { writeFileSync } from "node:fs";
import { makeAuthority } from "../../helpers/certificates.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { median } from "../../scale/load.js";
import { lackOfConnections } from "../machine.js";
import { compared, type Question } from "../question.js";

import type { SecureReport } from "../secure-load-process.js";

type Over = "https" | "h2";

const VERSIONS: Readonly<Record<Over, string>> = { https: "TLS, HTTP/1.1", h2: "HTTP/2" };
const APPENDS = 64;
const READERS = 1000;

interface Secured {
  readonly id: string;
  readonly title: string;
  readonly load: string;
  readonly appends: number;
  readonly readers: number;
  readonly unit: string;
  readonly goal: number;
  readonly valueOf: (report: SecureReport) => number;
}

/** The same of ours, and of a bare server of Node's with the same certificate. */
function over(version: Over, { id, title, load, appends, readers, unit, goal, valueOf }: Secured): Question {
  return {
    id: `${id}-${version}`,
    title: `${title}, ${VERSIONS[version]}`,
    load,
    async ask(rig) {
      const lack = lackOfConnections(readers + appends);
      if (lack !== null) return lack;
      const files = certificate();
      const [ours, yardstick]: [number[], number[]] = [[], []];
      const { pairs, warmUpMs, measureMs } = rig.effort;
      for (let pair = 0; pair < pairs; pair += 1) {
        rig.progress(`pair ${pair + 1} of ${pairs}`);
        const order = { over: version, appends, readers, warmUpMs, measureMs };
        // Each round has its own servers: readers that leave would be work for the next.
        const server = await rig.server("--tls-cert", files.cert, "--tls-key", files.key);
        ours.push(valueOf(await rig.secureLoad({ ...order, port: server.port })));
        await server.end("SIGKILL");
        const bare = await rig.secureYardstick({ over: version, ...files });
        yardstick.push(valueOf(await rig.secureLoad({ ...order, port: bare.port })));
        await bare.stop();
      }
      const ratio = median(ours.map((value, pair) => value / (yardstick[pair] ?? NaN)));
      return { figures: [compared("", unit, { ours: median(ours), yardstick: median(yardstick), ratio }, goal)] };
    },
  };
}

function certificate(): { readonly cert: string; readonly key: string } {
  const { cert, key } = makeAuthority().issue();
  const dir = tempDir();
  const files = { cert: `${dir}/cert.pem`, key: `${dir}/key.pem` };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key);
  return files;
}

const APPENDING: Secured = {
  id: "appends",
  title: "durable appends, one stream",
  load: `100 B, ${APPENDS} at a time; against a bare server with TLS`,
  appends: APPENDS,
  readers: 0,
  unit: "appends/s",
  goal: 0.8,
  valueOf: ({ appendsPerSecond }) => appendsPerSecond,
};

const FOLLOWING: Secured = {
  id: "sse-1000",
  title: `SSE fan-out, ${READERS.toLocaleString("en")} readers`,
  load: "one writer, 100 B; against a loop over res.write with TLS",
  appends: 1,
  readers: READERS,
  unit: "deliveries/s",
  goal: 0.9,
  valueOf: ({ deliveriesPerSecond }) => deliveriesPerSecond,
};

/** A writer that waits for each append waits for the disk as well, which takes a third of the time of a fan-out by HTTP/2. */
const FOLLOWING_FOUR: Secured = {
  ...FOLLOWING,
  id: "sse-1000-of-4",
  title: `${FOLLOWING.title} of four appends at a time`,
  load: "four appends at a time, 100 B; against a loop over res.write with TLS",
  appends: 4,
};

export const appendsHttps = over("https", APPENDING);
export const appendsHttp2 = over("h2", APPENDING);
export const sseHttps = over("https", FOLLOWING);
export const sseHttp2 = over("h2", FOLLOWING);
export const sseOfFourHttps = over("https", FOLLOWING_FOUR);
export const sseOfFourHttp2 = over("h2", FOLLOWING_FOUR);
