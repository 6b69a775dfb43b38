import { inTurns, type ClusterRig, type TurnEffort } from "../cluster/cluster-rig.js";
import { onCluster } from "../cluster/cluster-question.js";
import type { LoadReport } from "../load-process.js";
import { compared, type Question } from "../question.js";
import { appendTo, askTimes, creationOf, type Rig } from "../rig.js";
import { requestOf, type RequestShape } from "../traffic.js";

const IN_FLIGHT = 64;
const BYTES = 100;

/** What is appended to, and how. */
interface AppendsOptions {
  readonly id: string;
  readonly title: string;
  readonly streams: number;
  readonly frontEnds: number;
  /** Whether each front end has its own part of the streams, as behind a balancer that hashes the path. */
  readonly isSplit?: boolean;
  readonly atLeast: number;
}

/** Appends through so many front ends beside bare publishes: as many on their way, each a message of its own. */
function appends({ id, title, streams, frontEnds, isSplit = false, atLeast }: AppendsOptions): readonly Question[] {
  return onCluster({ id, title, load: `${BYTES} B, ${IN_FLIGHT} in flight` }, async (rig, cluster) => {
    const ports = await portsOf(cluster, frontEnds);
    const paths = Array.from({ length: streams }, (_, index) => `/v1/stream/s${index}`);
    await askTimes(ports[0] ?? 0, streams, (index) => requestOf(creationOf(paths[index] ?? "")));
    const requests = paths.map((path) => appendTo(path, BYTES));
    const parts = ports.map((_, at) => (isSplit ? requests.filter((_request, index) => index % frontEnds === at) : requests));
    const ours = async (effort: TurnEffort): Promise<number> => {
      const loads = ports.map((port, at) => load(rig, effort, port, parts[at] ?? [], IN_FLIGHT / frontEnds));
      return (await Promise.all(loads)).reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0);
    };
    const order = { kind: "publishes", subjects: streams, inFlight: IN_FLIGHT, bytes: BYTES } as const;
    const bare = async (effort: TurnEffort): Promise<number> => (await cluster.bare(order, effort)).perSecond;
    const result = await inTurns(rig, ours, bare);
    return {
      figures: [
        compared(
          "",
          "appends/s",
          result((perSecond) => perSecond),
          atLeast,
        ),
      ],
    };
  });
}

async function portsOf(cluster: ClusterRig, frontEnds: number): Promise<number[]> {
  const ports: number[] = [];
  for (let at = 0; at < frontEnds; at += 1) ports.push((await cluster.frontEnd()).port);
  return ports;
}

async function load(
  rig: Rig,
  effort: TurnEffort,
  port: number,
  requests: readonly RequestShape[],
  connections: number,
): Promise<LoadReport> {
  const report = await rig.load({ port, connections, traffic: { kind: "fixed", requests }, ...effort });
  const bad = Object.entries(report.refusals).map(([status, count]) => `${count} with ${status}`);
  if (bad.length > 0) throw new Error(`answers of a front end: ${bad.join(", ")}`);
  return report;
}

/** One append at a time, beside one publish at a time. */
const latency = onCluster({ id: "latency", title: "one append at a time", load: `${BYTES} B, 1 in flight` }, async (rig, cluster) => {
  const [port = 0] = await portsOf(cluster, 1);
  const path = "/v1/stream/s";
  await askTimes(port, 1, () => requestOf(creationOf(path)));
  const order = { kind: "publishes", subjects: 1, inFlight: 1, bytes: BYTES } as const;
  const result = await inTurns<Pick<LoadReport, "p50Ms" | "p99Ms">>(
    rig,
    (effort) => load(rig, effort, port, [appendTo(path, BYTES)], 1),
    (effort) => cluster.bare(order, effort),
  );
  return {
    figures: [
      { what: "p50", unit: "ms", ...result(({ p50Ms }) => p50Ms), goal: null },
      { what: "p99", unit: "ms", ...result(({ p99Ms }) => p99Ms), goal: null },
    ],
  };
});

/** From an append at one front end to a reader at another, beside a publish to a subscriber. */
const arrival = onCluster(
  { id: "arrival", title: "append to arrival by SSE at another front end", load: `${BYTES} B, one at a time` },
  async (rig, cluster) => {
    const [writePort = 0, readPort = 0] = await portsOf(cluster, 2);
    const path = "/v1/stream/s";
    await askTimes(writePort, 1, () => requestOf(creationOf(path)));
    const order = { kind: "arrivals", subjects: 1, inFlight: 1, bytes: BYTES } as const;
    const result = await inTurns(
      rig,
      ({ warmUpMs, measureMs }) => cluster.arrivals({ writePort, readPort, path, bytes: BYTES, warmUpMs, measureMs }),
      (effort) => cluster.bare(order, effort),
    );
    return {
      figures: [
        { what: "p50", unit: "ms", ...result(({ p50Ms }) => p50Ms), goal: null },
        { what: "p99", unit: "ms", ...result(({ p99Ms }) => p99Ms), goal: { kind: "atMost", value: 5 } },
      ],
    };
  },
);

export const CLUSTER_APPENDS: readonly Question[] = [
  ...appends({ id: "appends-one", title: "appends to one stream", streams: 1, frontEnds: 1, atLeast: 0.9 }),
  ...appends({ id: "appends-many", title: "appends to 1,000 streams", streams: 1000, frontEnds: 1, atLeast: 0.5 }),
  ...appends({ id: "two-one", title: "one stream, two front ends", streams: 1, frontEnds: 2, atLeast: 0.4 }),
  ...appends({ id: "two-many", title: "1,000 streams, each through two front ends", streams: 1000, frontEnds: 2, atLeast: 0.4 }),
  ...appends({
    id: "two-split",
    title: "1,000 streams, half through each of two front ends",
    streams: 1000,
    frontEnds: 2,
    isSplit: true,
    atLeast: 0.4,
  }),
  ...latency,
  ...arrival,
];
