import { parseOffset, type TokenPlace } from "../../src/protocol/offset.js";
import { must, Violation, type Incarnation, type Origin } from "./model.js";

/** A fork begins where it was asked for. */
export function checkPoint({ tag, invokedAt }: Incarnation, origin: Origin, point: number, nowMs: number): void {
  const { expected, from, subOffset, tail } = origin;
  must(origin.point === null || origin.point === point, () => `${tag} was forked at ${origin.point}, now at ${point}`);
  origin.point = point;
  if (!expected.wasThereSince(invokedAt, nowMs)) return;
  const least = (from ?? tail) + subOffset;
  must(
    from === null ? point >= tail : point >= least,
    () => `${tag} was forked at ${point}, asked for at ${from}+${subOffset}, where ${expected.tag} ended at ${tail}`,
  );
  must(from === null || subOffset > 0 || point === from, () => `${tag} was forked at ${point}, not ${from}`);
}

/** The position that a token stands for. */
export function positionOf(token: string): number {
  const { partStart, byteInPart } = placeOf(token);
  return partStart + byteInPart;
}

/** What a token says. */
export function placeOf(token: string): TokenPlace {
  const offset = parseOffset(token);
  if (offset?.kind !== "at") throw new Violation(`${token} is not a place`);
  return offset;
}
