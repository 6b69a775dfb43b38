/** Waits for all of `works`, also where some fail; then rejects with the first failure of them. */
export async function allEnded(works: readonly (Promise<void> | undefined)[]): Promise<void> {
  await Promise.allSettled(works);
  await Promise.all(works);
}
