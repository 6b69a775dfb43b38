import { READ_BYTES } from "../cluster/read-bytes.js";
import { onCluster } from "../cluster/cluster-question.js";
import type { ClusterRig } from "../cluster/cluster-rig.js";
import { openDialogue } from "../connection.js";
import { HttpAnswers } from "../http-answers.js";
import { absolute, type Question } from "../question.js";
import { appendTo, askTimes, creationOf, readOf, START } from "../rig.js";
import { median } from "../../scale/load.js";
import { requestOf } from "../traffic.js";

const STREAMS = 8;
const KIB = 1024;

function pathOf(index: number): string {
  return `/v1/stream/s${index}`;
}

/** A mebibyte in appends of so many bytes, each a message, read by a front end that has never seen it. */
function reads(bytes: number, id: string, of: string): readonly Question[] {
  const load = `${STREAMS} streams that the front end does not know, one after the other: p50`;
  return onCluster({ id, title: `1 MiB reads of ${of} appends`, load }, async (rig, cluster) => {
    const { port } = await cluster.frontEnd();
    await askTimes(port, STREAMS, (index) => requestOf(creationOf(pathOf(index))));
    rig.progress("appends");
    await Promise.all(Array.from({ length: STREAMS }, (_, index) => fill(port, pathOf(index), bytes)));
    const oursMs: number[] = [];
    const bareMs: number[] = [];
    for (let pair = 0; pair < rig.effort.pairs; pair += 1) {
      rig.progress(`pair ${pair + 1} of ${rig.effort.pairs}`);
      oursMs.push(await readByNewFrontEnd(cluster));
      const order = { kind: "reads", subjects: STREAMS, inFlight: 1, bytes } as const;
      bareMs.push((await cluster.bare(order, rig.effort)).p50Ms);
    }
    const ratio = median(oursMs.map((ms, pair) => ms / (bareMs[pair] ?? NaN)));
    const what = "the yardstick is a batch direct get";
    return { figures: [{ what, unit: "ms", ours: median(oursMs), yardstick: median(bareMs), ratio, goal: null }] };
  });
}

/** Appends one at a time, so that each is a message of its own. */
async function fill(port: number, path: string, bytes: number): Promise<void> {
  const { ask, close } = await openDialogue(port, new HttpAnswers());
  const append = requestOf(appendTo(path, bytes));
  for (let appended = 0; appended < READ_BYTES; appended += bytes) {
    const { status, head } = await ask(append);
    if (status >= 300) throw new Error(`an append was answered:\n${head}`);
  }
  close();
}

async function readByNewFrontEnd(cluster: ClusterRig): Promise<number> {
  const { port, stop } = await cluster.frontEnd();
  const { ask, close } = await openDialogue(port, new HttpAnswers());
  const latenciesMs: number[] = [];
  for (let index = 0; index < STREAMS; index += 1) {
    const sentMs = performance.now();
    const { status, wireBytes } = await ask(requestOf(readOf(`${pathOf(index)}?offset=${START}`)));
    if (status !== 200 || wireBytes < READ_BYTES) throw new Error(`a read was answered ${status} with ${wireBytes} bytes`);
    latenciesMs.push(performance.now() - sentMs);
  }
  close();
  await stop();
  return median(latenciesMs);
}

/** Pages of the list that are looked at after the first, and streams that are loaded. */
const PAGES = 10;
const LOADED = 10_000;

/** What is asked of very many streams. */
const many = onCluster({ id: "streams", title: "100,000 streams", load: "64 in flight" }, async (rig, cluster) => {
  const count = rig.size(100_000, 1000);
  const prefix = "/v1/stream/s";
  const first = await cluster.frontEnd();
  rig.progress("made");
  const makeMs = await elapsedMs(() => askTimes(first.port, count, (index) => requestOf(creationOf(`${prefix}${index}`)), 64));
  const made = count / (makeMs / 1000);
  rig.progress("bare publishes");
  const order = { kind: "publishes", subjects: count, inFlight: 64, bytes: 100 } as const;
  const { perSecond } = await cluster.bare(order, rig.effort);
  rig.progress("listed");
  const { port } = await cluster.frontEnd();
  const { firstMs, nextMs } = await list(port);
  rig.progress("loaded");
  const loaded = Math.min(count, rig.size(LOADED, 100));
  const second = await cluster.frontEnd();
  const read = (index: number): Buffer => requestOf(readOf(`${prefix}${index}?offset=${START}`));
  const loadMs = await elapsedMs(() => askTimes(second.port, loaded, read, 64));
  const perSecondLoaded = loaded / (loadMs / 1000);
  return {
    figures: [
      { what: "made", unit: "streams/s", ours: made, yardstick: perSecond, ratio: made / perSecond, goal: null },
      {
        what: "first GETs",
        unit: "streams/s",
        ours: perSecondLoaded,
        yardstick: perSecond,
        ratio: perSecondLoaded / perSecond,
        goal: null,
      },
      absolute("the list's first page at a front end that has just started", "ms", firstMs, null),
      absolute("a page of 1,000 after it", "ms", nextMs, null),
    ],
  };
});

async function elapsedMs(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/** How long the first page takes, and one after it. */
async function list(port: number): Promise<{ readonly firstMs: number; readonly nextMs: number }> {
  let after = "";
  const page = async (limit: number): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/stream/__ds/streams?limit=${limit}&after=${after}`);
    const { streams, next } = (await answer.json()) as { readonly streams: readonly unknown[]; readonly next: string | null };
    if (answer.status !== 200 || streams.length === 0) throw new Error(`a page of the list was answered ${answer.status}`);
    after = next ?? "";
  };
  const firstMs = await elapsedMs(() => page(100));
  const nextMs: number[] = [];
  for (let at = 0; at < PAGES && after !== ""; at += 1) nextMs.push(await elapsedMs(() => page(1000)));
  return { firstMs, nextMs: median(nextMs) };
}

export const CLUSTER_READS: readonly Question[] = [
  ...reads(100, "reads-small", "100 B"),
  ...reads(64 * KIB, "reads-large", "64 KiB"),
  ...many,
];
