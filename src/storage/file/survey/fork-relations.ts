import type { Position } from "../../storage.js";
import { sidecarPath, type Layout } from "../format/layout.js";
import { nameList } from "./name-list.js";
import type { Finding } from "./stream-check.js";
import type { FoundStream, StreamFacts } from "./stream-facts.js";

/** A fork, as its own files and records tell it. */
export interface KnownFork {
  readonly id: string;
  readonly name: string;
  readonly source: { readonly name: string; readonly id: string };
  readonly point: Position;
  readonly earliest: Position;
}

/** What a source says of a fork. */
export interface Reference {
  readonly source: StreamFacts;
  readonly id: string;
  readonly neededBefore: Position;
}

/** What is to be changed in a source's list of forks. */
export interface ReferenceChange {
  readonly source: string;
  readonly fork: string;
  /** Where the bytes end that the fork needs; `null`: there is no such fork. */
  readonly neededBefore: Position | null;
}

/** Where a fork and its source disagree, or one is missing; `change` is `null` where no change of a list helps. */
export interface ForkProblem {
  readonly finding: Finding;
  readonly change: ReferenceChange | null;
}

/**
 * Who was forked from whom, gathered from a whole directory: of streams without forks that were not forked themselves
 * it keeps nothing.
 */
export class ForkRelations {
  readonly #layout: Layout;
  readonly #forks = new Map<string, KnownFork>();
  /** Streams that list forks, by id. */
  readonly #sources = new Map<string, StreamFacts>();
  /** Forks by their source's id; `null` until it is asked for. */
  #bySource: Map<string, KnownFork[]> | null = null;
  /** Streams that are there but have no facts: the ids that they may have. */
  readonly #unsound: (readonly string[])[] = [];

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  /** Takes note of a stream; again of the same one changes what is known. */
  note({ id, name, forkedFrom, earliest, ...rest }: StreamFacts): void {
    this.#bySource = null;
    if (rest.forks.size > 0) this.#sources.set(id, { id, name, forkedFrom, earliest, ...rest });
    if (forkedFrom === null) return;
    const source = { name: forkedFrom.name, id: forkedFrom.id };
    this.#forks.set(id, { id, name, source, point: forkedFrom.point, earliest });
  }

  /** Notes a stream whose sidecar is lost; `ids` are those that it may have, none when nobody knows. */
  noteUnsound(ids: readonly string[]): void {
    this.#unsound.push(ids);
  }

  get isEmpty(): boolean {
    return this.#forks.size === 0 && this.#sources.size === 0;
  }

  /** Whether the stream of this id lists forks, or forks name it. */
  isSource(id: string): boolean {
    return this.#sources.has(id) || this.forksOf(id).length > 0;
  }

  /** The forks of the stream of this id. */
  forksOf(sourceId: string): readonly KnownFork[] {
    return this.#index().get(sourceId) ?? [];
  }

  /** The ids that forks give for their source of this name. */
  idsOf(sourceName: string): string[] {
    const sources = [...this.#forks.values()].map(({ source }) => source);
    return [...new Set(sources.filter(({ name }) => name === sourceName).map(({ id }) => id))];
  }

  /** What a source says of the fork of this id, `null` when none does. */
  referenceTo(id: string): Reference | null {
    for (const source of this.#sources.values()) {
      const neededBefore = source.forks.get(id);
      if (neededBefore !== undefined) return { source, id, neededBefore };
    }
    return null;
  }

  /** What sources say of forks that are found nowhere. */
  *unmatched(): Generator<Reference> {
    for (const source of this.#sources.values()) {
      for (const [id, neededBefore] of source.forks)
        if (this.#forks.get(id)?.source.id !== source.id) yield { source, id, neededBefore };
    }
  }

  /** The names of the forks that share bytes of a stream between two positions, also by way of other forks. */
  sharersOf(id: string, from: Position, to: Position): string[] {
    const names: string[] = [];
    const seen = new Set([id]);
    const left = [{ id, limit: Infinity }];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      for (const fork of this.forksOf(next.id)) {
        const limit = Math.min(next.limit, fork.point);
        if (limit <= from || seen.has(fork.id)) continue;
        seen.add(fork.id);
        if (fork.earliest < to) names.push(fork.name);
        left.push({ id: fork.id, limit });
      }
    }
    return names;
  }

  /** Compares both sides of each fork. `find` looks for a stream that none of those noted is. */
  async *problems(find: (name: string) => Promise<FoundStream>): AsyncGenerator<ForkProblem> {
    for (const [id, forks] of this.#index()) {
      const name = forks[0]?.source.name ?? "";
      const source = this.#sources.get(id) ?? (await find(name));
      if (source === "damaged") {
        yield this.#about(name, `its forks can't be read without it: ${nameList(forks.map((fork) => fork.name))}`);
      } else if (source === "missing" || source.id !== id) {
        const why = source === "missing" ? "is missing" : `is gone, and another stream (${source.id}) has its name`;
        for (const fork of forks) yield this.#about(fork.name, `its source ${JSON.stringify(name)} (${id}) ${why}`);
      } else for (const fork of forks) yield* this.#compare(source, fork);
    }
    yield* this.#leaks();
    yield* this.#cycles();
  }

  #index(): ReadonlyMap<string, KnownFork[]> {
    if (this.#bySource !== null) return this.#bySource;
    const bySource = new Map<string, KnownFork[]>();
    for (const fork of this.#forks.values()) {
      const forks = bySource.get(fork.source.id);
      if (forks === undefined) bySource.set(fork.source.id, [fork]);
      else forks.push(fork);
    }
    return (this.#bySource = bySource);
  }

  #about(stream: string, problem: string, change: ReferenceChange | null = null): ForkProblem {
    const file = sidecarPath(this.#layout.streamDirectory(stream));
    return { finding: { stream, file, offset: null, problem }, change };
  }

  *#compare(source: StreamFacts, fork: KnownFork): Generator<ForkProblem> {
    const needed = neededBy(fork);
    const listed = source.forks.get(fork.id);
    const change = { source: source.name, fork: fork.id, neededBefore: needed };
    const named = `its fork ${JSON.stringify(fork.name)} (${fork.id})`;
    const kept = `it keeps its bytes before ${listed} for ${named}`;
    // A reference to bytes that are no longer there keeps none.
    const keepsMore = listed !== undefined && listed > needed && listed > source.earliest;
    const problem =
      listed === undefined
        ? `it does not know ${named}, which needs its bytes before ${needed}: they could be dropped`
        : listed < needed
          ? `${kept}, which needs those before ${needed}`
          : keepsMore
            ? `${kept}, which needs only those before ${needed}`
            : null;
    if (problem !== null) yield this.#about(source.name, problem, change);
    const itsSource = `its source ${JSON.stringify(source.name)}`;
    if (source.tail < fork.point)
      yield this.#about(fork.name, `it begins at ${fork.point} of ${itsSource}, which ends at ${source.tail}`);
    const needs = `it needs the bytes of ${itsSource} from ${fork.earliest} on, which begins at ${source.earliest}`;
    if (needed > 0 && source.earliest > fork.earliest) yield this.#about(fork.name, needs);
  }

  /** Nothing is said of them while one of the streams that can't be read may be the one that is meant. */
  *#leaks(): Generator<ForkProblem> {
    const unmatched = [...this.unmatched()];
    const missed = new Set(unmatched.map(({ id }) => id));
    const isUnknown = this.#unsound.some((ids) => !ids.some((id) => missed.has(id)));
    const unsound = new Set(this.#unsound.flat());
    for (const { source, id, neededBefore } of unmatched) {
      if (isUnknown || unsound.has(id)) continue;
      const kept = neededBefore > source.earliest ? `: its bytes before ${neededBefore} are kept for nobody` : "";
      const change = { source: source.name, fork: id, neededBefore: null };
      yield this.#about(source.name, `it lists the fork ${id}, which is nowhere${kept}`, change);
    }
  }

  *#cycles(): Generator<ForkProblem> {
    const done = new Set<string>();
    for (const first of this.#forks.values()) {
      const path: KnownFork[] = [];
      let at: KnownFork | undefined = first;
      for (; at !== undefined && !done.has(at.id); at = this.#forks.get(at.source.id)) {
        done.add(at.id);
        path.push(at);
      }
      const start = at === undefined ? -1 : path.indexOf(at);
      const way = nameList(path.slice(start).map(({ source }) => source.name));
      if (start >= 0) yield this.#about(path[start]?.name ?? "", `it was forked from itself, by way of ${way}`);
    }
  }
}

/** Where the bytes end that a fork needs of its source: one that keeps nothing inherited needs none. */
export function neededBy({ point, earliest }: Pick<KnownFork, "point" | "earliest">): Position {
  return earliest < point ? point : 0;
}
