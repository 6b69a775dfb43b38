import { compared, type Question } from "../question.js";
import { messageOf } from "../traffic.js";
import { appendTo, ask, askEach, creationOf, type Ports, type Rig } from "../rig.js";
import { REFERENCE_STREAMS, redisAppends, referenceAfter } from "../rivals/opponents.js";

const CONNECTIONS = 64;
const BYTES = 100;

/** Durable appends of 100 bytes to so many streams. */
function appends(streams: number, id: string, title: string): Question {
  return {
    id,
    title,
    load: `${BYTES} B, ${CONNECTIONS} connections`,
    async ask(rig) {
      const paths = Array.from({ length: streams }, (_, index) => `/v1/stream/s${index}`);
      const ports = await appendPorts(rig, paths);
      const rivals = [
        ...(await redisAppends(rig, streams, BYTES)),
        ...(streams <= REFERENCE_STREAMS
          ? await referenceAfter(
              rig,
              paths.map((path) => creationOf(path)),
            )
          : []),
      ];
      const requests = paths.map((path) => appendTo(path, BYTES));
      const result = await rig.compare(
        { ...ports, rivals },
        () => ({ kind: "fixed", requests }),
        CONNECTIONS,
        (report) => report.requestsPerSecond,
      );
      return { figures: [compared("", "appends/s", result, 0.8)] };
    },
  };
}

async function appendPorts(rig: Rig, paths: readonly string[]): Promise<Ports> {
  const { port: ours } = await rig.server();
  await askEach(
    ours,
    paths.map((path) => creationOf(path)),
  );
  const yardstick = await rig.yardstick({ POST: await ask(ours, appendTo(paths[0] ?? "", BYTES)) });
  return { ours, yardstick };
}

export const manyStreams = appends(1000, "appends-many", "durable appends, 1,000 streams");
export const oneStream = appends(1, "appends-one", "durable appends, one stream");

export const producers: Question = {
  id: "producers",
  title: "appends by idempotent producers, JSON 1 KiB",
  load: `${CONNECTIONS} connections, each a producer with a stream of its own`,
  async ask(rig) {
    const { port: ours } = await rig.server();
    const path = "/v1/stream/probe";
    const json = { "Content-Type": "application/json" };
    const PUT = await ask(ours, creationOf(path, json));
    const POST = await ask(
      ours,
      appendTo(path, messageOf(1024), { ...json, "Producer-Id": "bench", "Producer-Epoch": "0", "Producer-Seq": "0" }),
    );
    const yardstick = await rig.yardstick({ PUT, POST });
    const rivals = await referenceAfter(rig);
    const result = await rig.compare(
      { ours, yardstick, rivals },
      (round) => ({ kind: "producers", prefix: `/v1/stream/p${round}-`, bytes: 1024 }),
      CONNECTIONS,
      (report) => report.requestsPerSecond,
    );
    return { figures: [compared("", "appends/s", result, 0.6)] };
  },
};

export const shortLives: Question = {
  id: "short-lives",
  title: "short lives: create, 10 appends, close",
  load: `${BYTES} B, ${CONNECTIONS} connections`,
  async ask(rig) {
    const { port: ours } = await rig.server();
    const path = "/v1/stream/probe";
    const PUT = await ask(ours, creationOf(path));
    const POST = await ask(ours, appendTo(path, BYTES));
    const CLOSE = await ask(ours, appendTo(path, 0, { "Stream-Closed": "true" }));
    const yardstick = await rig.yardstick({ PUT, POST, CLOSE });
    const rivals = await referenceAfter(rig);
    const result = await rig.compare(
      { ours, yardstick, rivals },
      (round) => ({ kind: "lives", prefix: `/v1/stream/r${round}/`, appends: 10, bytes: BYTES }),
      CONNECTIONS,
      (report) => report.requestsPerSecond,
    );
    return { figures: [compared("", "requests/s", result, 0.65)] };
  },
};
