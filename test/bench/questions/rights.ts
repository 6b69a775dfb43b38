import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compared, type Question } from "../question.js";
import { appendTo, askEach, creationOf, readOf, START, type Compared, type Effort, type Rig } from "../rig.js";
import type { RequestShape } from "../traffic.js";

const CONNECTIONS = 64;
const STREAMS = 1000;
const PATHS = Array.from({ length: STREAMS }, (_, index) => `/v1/stream/s${index}`);
/** Tokens that take turns: each is found among all of them. */
const TOKENS = 50;

/** A server with an auth file; resolves to its port, and to the headers of each of its tokens. */
async function guardedServer(rig: Rig): Promise<{ readonly port: number; readonly headers: readonly { Authorization: string }[] }> {
  const secrets = Array.from({ length: TOKENS }, () => randomBytes(32).toString("base64url"));
  const grants = [{ streams: ["other/**", "s*"], allow: ["read", "append", "create"] }];
  const tokens = secrets.map((secret, index) => ({ id: `t${index}`, sha256: createHash("sha256").update(secret).digest("hex"), grants }));
  const directory = rig.directory();
  mkdirSync(directory);
  const file = join(directory, "auth.json");
  writeFileSync(file, JSON.stringify({ tokens }), { mode: 0o600 });
  const { port } = await rig.server("--auth", file);
  return { port, headers: secrets.map((secret, index) => ({ Authorization: `Bearer sd_t${index}_${secret}` })) };
}

/** A server that asks for no credential, with the streams; resolves to its port. */
async function openServer(rig: Rig): Promise<number> {
  // As with an auth file: the headers for pages are the same.
  const { port } = await rig.server("--cors-origin", "*");
  await askEach(
    port,
    PATHS.map((path) => creationOf(path)),
    PATHS.map((path) => appendTo(path, 100)),
  );
  return port;
}

/** The same requests with a token each to a server with an auth file, and without to one that asks for none. */
function withRights(id: string, title: string, requestTo: (path: string, headers: Record<string, string>) => RequestShape): Question {
  return {
    id,
    title,
    load: `100 B, ${CONNECTIONS} connections, ${TOKENS} tokens; beside the same server without --auth`,
    async ask(rig) {
      const result = await rig.compareStarts((effort, start) => compareOnce(rig, requestTo, effort, start % 2 === 0));
      return { figures: [compared("", "requests/s", result, 0.95)] };
    },
  };
}

/** One pair, between two servers of its own: the one that has run for longer may be faster, so each is first in turn. */
async function compareOnce(
  rig: Rig,
  requestTo: (path: string, headers: Record<string, string>) => RequestShape,
  effort: Effort,
  isOpenFirst: boolean,
): Promise<Compared> {
  const early = isOpenFirst ? await openServer(rig) : null;
  const { port: ours, headers } = await guardedServer(rig);
  const headersOf = (index: number): Record<string, string> => ({ ...headers[index % TOKENS] });
  await askEach(
    ours,
    PATHS.map((path, index) => creationOf(path, headersOf(index))),
    PATHS.map((path, index) => appendTo(path, 100, headersOf(index))),
  );
  const open = early ?? (await openServer(rig));
  return rig.compare(
    { ours, yardstick: open, yardstickTraffic: { kind: "fixed", requests: PATHS.map((path) => requestTo(path, {})) } },
    () => ({ kind: "fixed", requests: PATHS.map((path, index) => requestTo(path, headersOf(index))) }),
    CONNECTIONS,
    (report) => report.requestsPerSecond,
    effort,
  );
}

export const readsWithTokens = withRights("auth-reads", "small reads with a token", (path, headers) =>
  readOf(`${path}?offset=${START}`, headers),
);
export const appendsWithTokens = withRights("auth-appends", "durable appends with a token, 1,000 streams", (path, headers) =>
  appendTo(path, 100, headers),
);
