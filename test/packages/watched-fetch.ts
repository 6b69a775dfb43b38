import { Changes } from "./changes.js";

/** One request that the packages made with the global `fetch`, and its answer. */
export interface Exchange {
  readonly method: string;
  readonly url: URL;
  readonly status: number;
}

/** Notes the requests that go through the global `fetch`, which all packages use, and changes nothing of them. */
export class WatchedFetch {
  readonly exchanges: Exchange[] = [];
  /** Methods of the requests that wait for the head of their answers. */
  readonly #underWay: string[] = [];
  #before: { readonly matches: (url: URL) => boolean; readonly run: () => Promise<void> } | undefined;
  readonly #changes = new Changes();
  readonly #fetch = globalThis.fetch;

  constructor() {
    globalThis.fetch = (input, init) => this.#watch(input, init);
  }

  /** Resolves when so many exchanges that match have been answered since the watch began. */
  answered(matches: (exchange: Exchange) => boolean, count = 1): Promise<void> {
    return this.#changes.until(() => this.exchanges.filter(matches).length >= count);
  }

  /** Has `run` done before the next request to such an address is sent. */
  beforeNext(matches: (url: URL) => boolean, run: () => Promise<void>): void {
    this.#before = { matches, run };
  }

  /** Resolves when no append waits for its answer. */
  appended(): Promise<void> {
    return this.#changes.until(() => !this.#underWay.includes("POST"));
  }

  async #watch(input: Parameters<typeof fetch>[0], init: RequestInit | undefined): Promise<Response> {
    const method = init?.method ?? "GET";
    const url = new URL(input instanceof Request ? input.url : input);
    const before = this.#before;
    if (before?.matches(url) === true) {
      this.#before = undefined;
      await before.run();
    }
    this.#underWay.push(method);
    try {
      const response = await this.#fetch(input, init);
      this.exchanges.push({ method, url, status: response.status });
      return response;
    } finally {
      this.#underWay.splice(this.#underWay.indexOf(method), 1);
      this.#changes.happened();
    }
  }
}
