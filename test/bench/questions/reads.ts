import { compared, type Question } from "../question.js";
import { appendTo, ask, askEach, creationOf, headerOf, readOf, START } from "../rig.js";
import { nginxReads, REFERENCE_STREAMS, referenceAfter } from "../rivals/opponents.js";

const CONNECTIONS = 64;
const MIB = 1024 * 1024;

export const smallReads: Question = {
  id: "reads-small",
  title: "small reads",
  load: `100 B, ${CONNECTIONS} connections`,
  async ask(rig) {
    const { port: ours } = await rig.server();
    const paths = Array.from({ length: 1000 }, (_, index) => `/v1/stream/s${index}`);
    const writes = [paths.map((path) => creationOf(path)), paths.map((path) => appendTo(path, 100))];
    await askEach(ours, ...writes);
    const requests = paths.map((path) => readOf(`${path}?offset=${START}`));
    const yardstick = await rig.yardstick({ GET: await ask(ours, requests[0] ?? readOf("")) });
    const few = { kind: "fixed", requests: requests.slice(0, REFERENCE_STREAMS) } as const;
    const references = await referenceAfter(rig, ...writes.map((phase) => phase.slice(0, REFERENCE_STREAMS)));
    const rivals = [...(await nginxReads(rig, paths.length, 100)), ...references.map((opponent) => ({ ...opponent, traffic: few }))];
    const result = await rig.compare(
      { ours, yardstick, rivals },
      () => ({ kind: "fixed", requests }),
      CONNECTIONS,
      (report) => report.requestsPerSecond,
    );
    return { figures: [compared("", "reads/s", result, 0.85)] };
  },
};

export const revalidation: Question = {
  id: "reads-304",
  title: "reads that revalidate",
  load: `304, ${CONNECTIONS} connections`,
  async ask(rig) {
    const { port: ours } = await rig.server();
    const path = "/v1/stream/s";
    await ask(ours, creationOf(path));
    await ask(ours, appendTo(path, 100));
    const etag = headerOf(await ask(ours, readOf(`${path}?offset=${START}`)), "etag");
    const request = readOf(`${path}?offset=${START}`, { "If-None-Match": etag });
    const answer = await ask(ours, request);
    if (answer.status !== 304) throw new Error(`a read with ${etag} is answered ${answer.status}`);
    const result = await rig.compare(
      { ours, yardstick: await rig.yardstick({ GET: answer }) },
      () => ({ kind: "fixed", requests: [request] }),
      CONNECTIONS,
      (report) => report.requestsPerSecond,
    );
    return { figures: [compared("", "reads/s", result, 0.9)] };
  },
};

/** 1 MiB chunks of a stream of so many MiB. */
function largeReads(id: string, title: string, mib: number, args: readonly string[], atLeast: number): Question {
  return {
    id,
    title,
    load: "1 MiB chunks, 16 connections",
    async ask(rig) {
      const { port: ours } = await rig.server(...args);
      const path = "/v1/stream/large";
      await ask(ours, creationOf(path));
      const offsets = [START];
      const chunks = rig.size(mib, 16);
      for (let appended = 0; appended < chunks; appended += 1) {
        offsets.push(headerOf(await ask(ours, appendTo(path, MIB)), "stream-next-offset"));
      }
      const requests = offsets.slice(0, -1).map((offset) => readOf(`${path}?offset=${offset}`));
      const answer = await ask(ours, requests[0] ?? readOf(""));
      if (answer.bodyBytes !== MIB) throw new Error(`a chunk of ${answer.bodyBytes} bytes`);
      const yardstick = await rig.yardstick({ GET: answer });
      const rivals = await nginxReads(rig, chunks, MIB);
      const result = await rig.compare(
        { ours, yardstick, rivals },
        () => ({ kind: "fixed", requests }),
        16,
        (report) => report.answerBytesPerSecond / 1e6,
      );
      return { figures: [compared("", "MB/s", result, atLeast)] };
    },
  };
}

export const warmReads = largeReads("reads-large", "large reads of a warm 1 GiB stream", 1024, [], 0.6);
export const cachedReads = largeReads("reads-cached", "large reads from the tail cache", 16, ["--tail-cache-bytes", "64MiB"], 0.9);
