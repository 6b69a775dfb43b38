import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** A connection through a proxy, and its other end. */
interface Passage {
  readonly from: Socket;
  readonly to: Socket;
}

/** The way from one server to another. */
interface Way {
  readonly listener: Server;
  readonly passages: Set<Passage>;
  isCut: boolean;
}

/** The ways between the servers of a cluster, each through a proxy, so that a server can be cut off from the others. */
export class RouteProxies {
  readonly #ways: readonly (readonly Way[])[];
  #ports: readonly number[] = [];

  private constructor(size: number) {
    const places = Array.from({ length: size }, (_, at) => at);
    this.#ways = places.map(() => places.map((to) => this.#way(to)));
  }

  /** Proxies for so many servers, to be given to {@link NatsCluster} as its `routes`. */
  static async open(size: number): Promise<RouteProxies> {
    const proxies = new RouteProxies(size);
    await Promise.all(
      proxies.#ways.flat().map(async ({ listener }) => {
        listener.listen(0, "127.0.0.1");
        await once(listener, "listening");
      }),
    );
    return proxies;
  }

  /** The addresses under which each server knows all; `ports` are their own. */
  readonly routes = (ports: readonly number[]): readonly (readonly number[])[] => {
    this.#ports = ports;
    return this.#ways.map((row) => row.map(({ listener }) => (listener.address() as AddressInfo).port)); // it listens
  };

  #way(to: number): Way {
    const listener = createServer((from) => {
      const passage = { from, to: connect(this.#ports[to] ?? 0, "127.0.0.1") };
      way.passages.add(passage);
      for (const [one, other] of [
        [passage.from, passage.to],
        [passage.to, passage.from],
      ] as const) {
        one.on("data", (bytes) => void other.write(bytes));
        one.on("error", () => one.destroy());
        one.on("close", () => {
          other.destroy();
          way.passages.delete(passage);
        });
      }
      if (way.isCut) hold(passage);
    });
    const way: Way = { listener, passages: new Set(), isCut: false };
    return way;
  }

  /** From now on nothing of what a server and the others send each other arrives; connections stay. */
  cut(server: number): void {
    for (const way of this.#waysOf(server)) {
      way.isCut = true;
      for (const passage of way.passages) hold(passage);
    }
  }

  /** What was held goes on. */
  heal(server: number): void {
    for (const way of this.#waysOf(server)) {
      way.isCut = false;
      for (const { from, to } of way.passages) {
        from.resume();
        to.resume();
      }
    }
  }

  #waysOf(server: number): readonly Way[] {
    return this.#ways.flatMap((row, from) => row.filter((_, to) => (from === server) !== (to === server)));
  }

  /** How many connections there are between a server and the others. */
  connectionsOf(server: number): number {
    return this.#waysOf(server).reduce((sum, { passages }) => sum + passages.size, 0);
  }

  async close(): Promise<void> {
    for (const { listener, passages } of this.#ways.flat()) {
      for (const { from, to } of passages) {
        from.destroy();
        to.destroy();
      }
      await new Promise((resolve) => listener.close(resolve));
    }
  }
}

function hold({ from, to }: Passage): void {
  from.pause();
  to.pause();
}
