/** A repeatable source of numbers in [0, 1) (mulberry32), for tests that print their seed when they fail. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A seed for this run: `SEED` from the environment to repeat one, else the time. */
export function seedOfRun(): number {
  return Number(process.env["SEED"] ?? Date.now() % 2 ** 32);
}
