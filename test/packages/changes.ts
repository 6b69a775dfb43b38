/** Those who wait until something holds that may change at any time. */
export class Changes {
  #look = new Set<() => void>();

  /** Resolves when `holds` does: it is asked now, and after each change. */
  until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!holds()) return;
        this.#look.delete(look);
        resolve();
      };
      this.#look.add(look);
      look();
    });
  }

  /** Something has changed. */
  happened(): void {
    for (const look of [...this.#look]) look();
  }
}
