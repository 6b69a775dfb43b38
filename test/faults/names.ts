import type { Random } from "../helpers/random.js";
import type { Incarnation } from "./model.js";
import type { PayloadKind } from "./operations.js";

/** A name of the server's, with every stream that there was or may have been under it. */
export interface Name {
  readonly name: string;
  readonly kind: PayloadKind;
  readonly incarnations: Incarnation[];
  /** A bit of its files was turned around: it may answer that it is damaged. */
  isDamaged: boolean;
  /** A bit of an index was turned around: reads of its streams, and of their forks, may end anywhere. */
  hasLostIndex: boolean;
  /** The server that ended last had written to its last segment: the file ends where the stream does. */
  isJustWritten: boolean;
}

/** The content type of a kind of stream, without its parameters. */
export const CONTENT_TYPES: Record<PayloadKind, string> = {
  json: "application/json",
  text: "text/plain",
  binary: "application/octet-stream",
};

const FEW: readonly (readonly [string, PayloadKind])[] = [
  ["chat/1", "json"],
  ["Logs", "text"],
  ["blob", "binary"],
  ["chat/2", "json"],
];
/** Names of streams that are forked from each other. */
const FAMILY: readonly (readonly [string, PayloadKind])[] = [
  ["a", "json"],
  ["b", "json"],
  ["c", "binary"],
  ["d", "binary"],
  ["e", "json"],
  ["f", "binary"],
  ["g", "json"],
];
const KINDS: readonly PayloadKind[] = ["json", "text", "binary"];
/** Names that a file system might mix up, or not take as they are. */
const SHAPES: readonly ((index: number) => string)[] = [
  (index) => `user-${index}`,
  (index) => `USER-${index - 1}`,
  (index) => `räume/${index}/日本語`,
  (index) => `.${index}.`,
  (index) => `%2F ${index}~\\"'`,
  (index) => `${"Lang/".repeat(30)}${index}`,
  (index) => `${"l".repeat(199)}${index}`,
  (index) => `${"😀".repeat(255)}${String(index).padStart(4, "0")}`,
];

/** The names of a history: one to four as a rule, a crowd now and then. */
export function someNames(random: Random, forks: boolean): readonly Name[] {
  if (forks) return named(FAMILY.slice(0, random.integer(2, FAMILY.length)));
  const isCrowd = random.chance(0.12);
  const chosen = isCrowd ? crowd(random.integer(20, 50)) : FEW.slice(0, random.integer(1, FEW.length));
  return named(chosen);
}

function named(chosen: readonly (readonly [string, PayloadKind])[]): readonly Name[] {
  return chosen.map(([name, kind]) => ({ name, kind, incarnations: [], isDamaged: false, hasLostIndex: false, isJustWritten: false }));
}

function crowd(size: number): readonly (readonly [string, PayloadKind])[] {
  return Array.from({ length: size }, (_, index) => [shapeOf(index)(index), KINDS[index % KINDS.length] ?? "json"]);
}

function shapeOf(index: number): (index: number) => string {
  return SHAPES[index % SHAPES.length] ?? String;
}
