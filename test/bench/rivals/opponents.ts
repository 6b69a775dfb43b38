import type { RivalFigure } from "../question.js";
import { askEach, type Opponent, type Rig } from "../rig.js";
import type { RequestShape } from "../traffic.js";
import { nginx } from "./nginx.js";
import { redis } from "./redis.js";
import { reference } from "./reference.js";

/** With more than a hundred, which it has open at a time, the reference server answers some appends with 404. */
export const REFERENCE_STREAMS = 50;

/** The reference server that has answered `phases`, for the same load as ours; none where it is not installed. */
export async function referenceAfter(rig: Rig, ...phases: readonly (readonly RequestShape[])[]): Promise<Opponent[]> {
  if (!reference.isInstalled()) return [];
  rig.progress(`${reference.name} starts`);
  const port = await reference.start(rig);
  await askEach(port, ...phases);
  return [{ name: reference.name, port }];
}

/** Redis with appends of so many bytes to so many of its streams; none where it is not installed. */
export async function redisAppends(rig: Rig, streams: number, bytes: number): Promise<Opponent[]> {
  if (!redis.isInstalled()) return [];
  const port = await redis.start(rig);
  return [{ name: redis.name, port, traffic: { kind: "xadd", prefix: "s", streams, bytes } }];
}

/** nginx with reads of so many files of so many bytes; none where it is not installed. */
export async function nginxReads(rig: Rig, files: number, bytes: number): Promise<Opponent[]> {
  if (!nginx.isInstalled()) return [];
  const port = await nginx.start(rig, Array<number>(files).fill(bytes));
  const requests = Array.from({ length: files }, (_, index) => ({ method: "GET", path: `/${index}`, headers: {}, body: 0 }));
  return [{ name: nginx.name, port, traffic: { kind: "fixed", requests } }];
}

/** What `measure` finds of each of `opponents`; one that fails is left out, and that is said. */
export async function figuresOf(opponents: readonly Opponent[], measure: (port: number) => Promise<number>): Promise<RivalFigure[]> {
  const figures: RivalFigure[] = [];
  for (const { name, port } of opponents) {
    try {
      figures.push({ name, value: await measure(port) });
    } catch (error) {
      console.error(`${name} failed: ${String(error)}`);
    }
  }
  return figures;
}
