/** One request that the packages made with the global `fetch`, and its answer. */
export interface Exchange {
  readonly method: string;
  readonly url: URL;
  readonly status: number;
}

/** Notes what goes through the global `fetch`, which all packages use, and changes nothing of it. */
export class WatchedFetch {
  readonly exchanges: Exchange[] = [];
  /** Methods of the requests that wait for the head of their answers. */
  readonly #underWay: string[] = [];
  #look = new Set<() => void>();
  readonly #fetch = globalThis.fetch;

  constructor() {
    globalThis.fetch = (input, init) => this.#watch(input, init);
  }

  /** Resolves when so many exchanges that match have been answered since the watch began. */
  answered(matches: (exchange: Exchange) => boolean, count = 1): Promise<void> {
    return this.#until(() => this.exchanges.filter(matches).length >= count);
  }

  /** Resolves when no append waits for its answer. */
  appended(): Promise<void> {
    return this.#until(() => !this.#underWay.includes("POST"));
  }

  async #watch(input: Parameters<typeof fetch>[0], init: RequestInit | undefined): Promise<Response> {
    const method = init?.method ?? "GET";
    this.#underWay.push(method);
    try {
      const response = await this.#fetch(input, init);
      const url = new URL(input instanceof Request ? input.url : input);
      this.exchanges.push({ method, url, status: response.status });
      return response;
    } finally {
      this.#underWay.splice(this.#underWay.indexOf(method), 1);
      for (const look of [...this.#look]) look();
    }
  }

  #until(holds: () => boolean): Promise<void> {
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
}
