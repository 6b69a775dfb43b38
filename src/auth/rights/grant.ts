// What grants allow: whom they are for is decided elsewhere.

import type { Rate } from "../../net/rate.js";
import { nameMatcher } from "../../protocol/names/name-pattern.js";
import { rangesOfPattern, type NameRange } from "../../protocol/names/name-range.js";
import type { Right } from "./caller.js";
import { patternFor } from "./pattern.js";
import type { Operation } from "./operation.js";

/** One grant, as the auth file or a JWT has it. */
export interface Grant {
  /** Patterns of names; `{sub}` stands for whoever the credential names. */
  readonly streams: readonly string[];
  readonly allow: readonly Operation[];
  /** `null` where it has no rate of its own. */
  readonly rate: Rate | null;
}

/** The pattern of all names. */
const ALL = "**";

/** Whether a grant allows `admin`, and is not for all streams. */
export function isAdminForSome({ streams, allow }: Pick<Grant, "streams" | "allow">): boolean {
  return allow.includes("admin") && !streams.includes(ALL);
}

/** What a pattern and each of its segments take of memory, about, beside its text. */
const PATTERN_BYTES = 256;
const SEGMENT_BYTES = 64;

interface Row {
  readonly allow: ReadonlySet<Operation>;
  readonly matchers: readonly ((name: string) => boolean)[];
  /** Whether one of them is `**`. */
  readonly isForAll: boolean;
  /** Where the names are that they match. */
  readonly ranges: readonly NameRange[];
  readonly right: Right;
}

/** The grants of one caller. A grant's number is its place in the list. */
export class Grants {
  /** What they take of memory, about, in bytes. */
  readonly weight: number;
  readonly #rows: readonly Row[];

  /** Patterns with `{sub}` are for `sub`; where that is `null`, they match nothing. */
  constructor(grants: readonly Grant[], sub: string | null) {
    let weight = 0;
    this.#rows = grants.map(({ streams, allow, rate }, grant) => {
      const patterns = streams.flatMap((pattern) => patternFor(pattern, sub) ?? []);
      for (const pattern of patterns) weight += weightOf(pattern);
      return {
        allow: new Set(allow),
        matchers: patterns.map(nameMatcher),
        isForAll: patterns.includes(ALL),
        ranges: patterns.flatMap(rangesOfPattern),
        right: { grant, rate },
      };
    });
    this.weight = weight;
  }

  /** Where the names are of all streams on which some grant may allow `operation`. */
  rangesOf(operation: Operation): readonly NameRange[] {
    return this.#rows.flatMap(({ allow, ranges }) => (allow.has(operation) ? ranges : []));
  }

  /** Whether some grant allows `operation`, on whatever streams. */
  mayAnywhere(operation: Operation): boolean {
    return this.#rows.some(({ allow, matchers }) => allow.has(operation) && matchers.length > 0);
  }

  /** Whether some grant allows `operation` on all streams. */
  mayEverywhere(operation: Operation): boolean {
    return this.#rows.some(({ allow, isForAll }) => isForAll && allow.has(operation));
  }

  /** The first grant that allows `operation` on the stream `name`, as a right; `null` where none does. */
  rightTo(operation: Operation, name: string): Right | null {
    for (const { allow, matchers, right } of this.#rows) {
      if (!allow.has(operation)) continue;
      for (const matches of matchers) if (matches(name)) return right;
    }
    return null;
  }
}

/** Its text is there as it is, and in parts. */
function weightOf(pattern: string): number {
  return PATTERN_BYTES + 2 * pattern.length + SEGMENT_BYTES * pattern.split("/").length;
}
