import { commandIn, type Conversation, type Hearer, type Speaker } from "../../../ops/control.js";
import type { EngineParts } from "../disk/engine-state.js";
import { JournalPin } from "../journal/journal-pin.js";

/** What a backup asks of an engine that is open. */
export interface OpenEngine {
  readonly directoryId: Buffer;
  /** The last batch that is durable and applied: nothing was acknowledged that is in a later one. */
  readonly lastBatch: () => number;
}

/**
 * Serves `streamdir backup`: pins the journal for as long as the conversation lasts, and tells which batch is durable.
 * All copying is the command's own work.
 */
export class BackupDesk {
  readonly pin: JournalPin;
  /** The conversations of the process's socket, by command. */
  readonly conversations: ReadonlyMap<string, Conversation>;
  #engine: OpenEngine | null = null;

  constructor(parts: EngineParts) {
    this.pin = new JournalPin(parts);
    this.conversations = new Map([["backup", (speaker) => this.#begin(speaker)]]);
  }

  /** Recovery is over: from now on there is something to copy. */
  open(engine: OpenEngine): void {
    this.#engine = engine;
  }

  #begin(speaker: Speaker): Hearer | null {
    const engine = this.#engine;
    if (engine === null) {
      speaker.end({ error: "starting" });
      return null;
    }
    const release = this.pin.take((why) => speaker.end({ error: why }));
    if (release === null) {
      speaker.end({ error: "backup-running" });
      return null;
    }
    speaker.say({ pinned: engine.directoryId.toString("hex") });
    return {
      heard: (request) => {
        if (commandIn(request) === "batch") speaker.say({ batch: engine.lastBatch() });
        else speaker.end({ error: "unknown-command" });
      },
      left: release,
    };
  }
}
