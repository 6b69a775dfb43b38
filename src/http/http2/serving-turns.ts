// Spreads the requests of HTTP/2 over the turns of the event loop.

/**
 * How many requests are served in one turn, of a connection that has had many streams reset. One packet may bring
 * hundreds. Those behind are served in the turns that follow, if they are not reset by then. Others are not held back:
 * answers that are written one turn after the other take more time.
 */
const MAX_SERVED = 16;

/** A request that is served when it is its turn, unless it is over by then. */
export interface Waiting {
  readonly isOver: boolean;
  serve(): void;
}

/** The turns of the event loop, as far as requests come in them. */
export class ServingTurns {
  #number = 0;
  #isNextAwaited = false;
  /** Connections with requests that wait. */
  #waiting: ServingTurn[] = [];

  /** The number of this turn; each has another. */
  get number(): number {
    if (!this.#isNextAwaited) {
      this.#isNextAwaited = true;
      setImmediate(() => this.#begin());
    }
    return this.#number;
  }

  /** Calls `connection` in the next turn. */
  wait(connection: ServingTurn): void {
    this.#waiting.push(connection);
  }

  #begin(): void {
    this.#isNextAwaited = false;
    this.#number += 1;
    const connections = this.#waiting;
    if (connections.length === 0) return;
    this.#waiting = [];
    for (const connection of connections) connection.serveWaiting();
  }
}

/** The part of one connection in each turn. Its requests are served in their order. */
export class ServingTurn {
  readonly #turns: ServingTurns;
  readonly #waiting: Waiting[] = [];
  /** The turn in which it last served, and how many. */
  #number = -1;
  #served = 0;

  constructor(turns: ServingTurns) {
    this.#turns = turns;
  }

  /** Serves a request now, or where it `isBounded` perhaps in a later turn. */
  add(request: Waiting, isBounded: boolean): void {
    if (this.#waiting.length === 0 && (!isBounded || this.#hasRoom())) return request.serve();
    if (this.#waiting.push(request) === 1) this.#turns.wait(this);
  }

  /** Serves those that wait, as many as there is room for. */
  serveWaiting(): void {
    while (this.#waiting[0]?.isOver === true || (this.#waiting.length > 0 && this.#hasRoom())) {
      const request = this.#waiting.shift();
      if (request?.isOver === false) request.serve();
    }
    if (this.#waiting.length > 0) this.#turns.wait(this);
  }

  /** Takes one of this turn's; false when it has none left. */
  #hasRoom(): boolean {
    const { number } = this.#turns;
    if (number !== this.#number) this.#served = 0;
    this.#number = number;
    if (this.#served >= MAX_SERVED) return false;
    this.#served += 1;
    return true;
  }
}
