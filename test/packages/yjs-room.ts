import assert from "node:assert/strict";
import { mock, type TestContext } from "node:test";
import { YjsProvider } from "@durable-streams/y-durable-streams";
import { YjsServer } from "@durable-streams/y-durable-streams/server";
import { Awareness } from "y-protocols/awareness";
import * as Y from "yjs";
import type { Server } from "./server.js";
import type { WatchedFetch } from "./watched-fetch.js";

/** How the package's provider follows what comes. */
export type LiveMode = "sse" | "long-poll";

/** One document, those who edit it, and the package's own server between them and ours, for one test. */
export class Room {
  /** What the package's server and its providers said of faults. */
  readonly faults: string[] = [];
  /** The size in bytes of each snapshot that the package made. */
  readonly snapshotBytes: number[] = [];
  readonly docId: string;
  readonly #server: Server;
  readonly #watched: WatchedFetch;
  readonly #peers: Peer[] = [];
  readonly #started: YjsServer[] = [];
  #wake = (): void => {};

  private constructor(context: TestContext, docId: string, server: Server, watched: WatchedFetch) {
    this.docId = docId;
    this.#server = server;
    this.#watched = watched;
    // Not the context's own mock: what the package leaves behind fails, and tells it, when the server ends.
    mock.method(console, "error", (...said: unknown[]) => void this.faults.push(said.join(" ")));
    mock.method(console, "log", (said: string) => this.#heard(said));
    context.after(() => this.#close());
  }

  /** `compactionThreshold` in bytes of updates; 1 MiB when it is left to the package. */
  static async open(
    context: TestContext,
    docId: string,
    server: Server,
    watched: WatchedFetch,
    compactionThreshold?: number,
  ): Promise<Room> {
    const room = new Room(context, docId, server, watched);
    await room.serve(compactionThreshold);
    return room;
  }

  /** Starts the package's server, one that knows only what the streams hold; who joins from now on joins it. */
  async serve(compactionThreshold?: number): Promise<void> {
    const yjs = new YjsServer({ dsServerUrl: this.#server.origin, ...(compactionThreshold === undefined ? {} : { compactionThreshold }) });
    await yjs.start();
    this.#started.push(yjs);
  }

  /** Where the package's server that was started last listens. */
  get url(): string {
    return this.#started.at(-1)?.url ?? "";
  }

  /** Someone with an empty document; resolves when it has all that was there. */
  async join(liveMode: LiveMode): Promise<Peer> {
    const peer = new Peer(`${this.url}/v1/yjs/test`, this.docId, liveMode, this.faults);
    this.#peers.push(peer);
    await peer.connect();
    return peer;
  }

  /** Resolves when there have been so many compactions. */
  async compacted(count: number): Promise<void> {
    while (this.snapshotBytes.length < count) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  #heard(said: string): void {
    const bytes = /^\[Compactor\] Compacted .*snapshot=(\d+) bytes/.exec(said)?.[1];
    if (bytes !== undefined) this.snapshotBytes.push(Number(bytes));
    this.#wake();
  }

  async #close(): Promise<void> {
    await Promise.all(this.#peers.map((peer) => peer.leave()));
    await this.#watched.appended(); // they say good-bye without waiting for the answer
    await Promise.all(this.#started.map((yjs) => yjs.stop()));
  }
}

/** Someone who edits the document, and shows the others that he is there. */
export class Peer {
  readonly doc = new Y.Doc();
  readonly awareness = new Awareness(this.doc);
  readonly #provider: YjsProvider;

  constructor(baseUrl: string, docId: string, liveMode: LiveMode, faults: string[]) {
    this.#provider = new YjsProvider({ doc: this.doc, awareness: this.awareness, baseUrl, docId, liveMode, connect: false });
    this.#provider.on("error", (fault) => void faults.push(String(fault)));
  }

  /** Resolves when the document has all that was there. */
  async connect(): Promise<void> {
    await this.#provider.connect();
    assert.ok(this.#provider.synced, "the provider is connected");
  }

  get text(): Y.Text {
    return this.doc.getText("text");
  }

  get fields(): Y.Map<string> {
    return this.doc.getMap("fields");
  }

  /** Appends so many characters, as updates of at most `updateBytes`, and has them sent. */
  async write(bytes: number, updateBytes = 64 * 1024): Promise<void> {
    for (let left = bytes; left > 0; left -= updateBytes) this.text.insert(this.text.length, "x".repeat(Math.min(left, updateBytes)));
    await this.#provider.flush();
  }

  /** The next state of another one that reaches this one; `undefined` when he is gone. */
  seenOf(other: Peer): Promise<unknown> {
    return new Promise((resolve) => {
      const look = (_: unknown, origin: unknown): void => {
        if (origin !== "server") return;
        this.awareness.off("change", look);
        resolve(this.awareness.getStates().get(other.awareness.clientID));
      };
      this.awareness.on("change", look);
    });
  }

  /** Ends the connection; may be called again. */
  async leave(): Promise<void> {
    await this.#provider.disconnect();
    this.#provider.destroy();
    this.awareness.destroy();
    this.doc.destroy();
  }
}

/** Resolves when the documents are the same. */
export function same(...peers: readonly Peer[]): Promise<void> {
  const areSame = (of: (doc: Y.Doc) => string) => new Set(peers.map(({ doc }) => of(doc))).size === 1;
  return new Promise((resolve) => {
    const look = (): void => {
      if (!areSame(writtenBy) || !areSame(contentOf)) return;
      for (const { doc } of peers) doc.off("update", look);
      resolve();
    };
    for (const { doc } of peers) doc.on("update", look);
    look();
  });
}

/** How much each client has written; cheap, but says nothing of what was deleted. */
function writtenBy(doc: Y.Doc): string {
  return [...Y.decodeStateVector(Y.encodeStateVector(doc))].sort(([a], [b]) => a - b).join(";");
}

function contentOf(doc: Y.Doc): string {
  const fields = [...doc.getMap("fields")].sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([fields, doc.getText("text")]);
}
