/** Resolves when `holds` does, which it asks in each turn of the event loop: for what nobody tells of. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}
