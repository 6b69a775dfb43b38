import type { Stream } from "../../src/stream/loaded/stream.js";
import { must, type Incarnation } from "./model.js";
import type { Name } from "./names.js";

/** Whose id is whose: each incarnation has one of its own, for ever. */
export class Identities {
  readonly #ids = new Map<string, string>();

  /** Compares the id of a stream with what it had before, and with those of others. */
  observe(incarnation: Incarnation, id: string): void {
    const { tag } = incarnation;
    must(incarnation.id === null || incarnation.id === id, () => `${tag} had the id ${incarnation.id}, now has ${id}`);
    const owner = this.#ids.get(id);
    must(owner === undefined || owner === tag, () => `${tag} has the id of ${owner}`);
    incarnation.id = id;
    this.#ids.set(id, tag);
  }

  /** The stream that it was forked from: the one with the id, or the only one that nobody has seen the id of. */
  sourceOf(names: readonly Name[], { config: { forkedFrom } }: Stream): Incarnation | null {
    const candidates = names.find(({ name }) => name === forkedFrom?.name)?.incarnations.filter(({ initial }) => !initial.refused) ?? [];
    const known = candidates.find(({ id }) => id === forkedFrom?.id);
    if (known !== undefined || forkedFrom === null) return known ?? null;
    const [only, ...more] = candidates.filter(({ id }) => id === null);
    must(only !== undefined, () => `a stream was forked from ${forkedFrom.name} ${forkedFrom.id}, which nobody created`);
    if (more.length > 0) return null;
    this.observe(only, forkedFrom.id);
    return only;
  }
}
