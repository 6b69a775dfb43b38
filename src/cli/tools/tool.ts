// What the commands beside the server's own are made of.

import type { Surroundings } from "../terms/verb.js";

/** A flag of a command. */
export interface ToolFlag {
  /** Without its dashes. */
  readonly flag: string;
  /** `switch` takes no value; `duration` is read to milliseconds; `integer` is a plain decimal. */
  readonly kind: "text" | "duration" | "integer" | "switch";
  /** What stands for its value in the help. */
  readonly placeholder?: string;
  readonly isRequired?: true;
  /** The environment variable that gives the value where the flag does not. */
  readonly env?: string;
  readonly help: string;
}

/** One command, like `streamdir token add`. */
export interface ToolCommand {
  /** The words after `streamdir`. */
  readonly name: string;
  /** What it does, for the help; begins with a small letter. */
  readonly summary: string;
  /** More for its own help, in lines of at most 100 columns. */
  readonly details?: readonly string[];
  readonly flags: readonly ToolFlag[];
  /** Resolves to the exit status. Rejects only on a fault of the program. */
  run(given: Given, surroundings: Surroundings): Promise<number>;
}

/** A family of commands, like `streamdir token`. */
export interface Tool {
  readonly name: string;
  /** What it is for, for the help. */
  readonly summary: string;
  readonly commands: readonly ToolCommand[];
}

/** What a command was given, checked against its flags. */
export class Given {
  readonly #texts: ReadonlyMap<string, string>;
  readonly #numbers: ReadonlyMap<string, number>;
  readonly #switches: ReadonlySet<string>;

  constructor(texts: ReadonlyMap<string, string>, numbers: ReadonlyMap<string, number>, switches: ReadonlySet<string>) {
    this.#texts = texts;
    this.#numbers = numbers;
    this.#switches = switches;
  }

  /** The value of a flag of text; `null` when it was not given. */
  text(flag: string): string | null {
    return this.#texts.get(flag) ?? null;
  }

  /** The value of a flag that its command needs. */
  needed(flag: string): string {
    const text = this.text(flag);
    if (text === null) throw new Error(`--${flag} is not marked as required`);
    return text;
  }

  /** The value of a flag of a duration, in milliseconds, or of an integer; `null` when it was not given. */
  number(flag: string): number | null {
    return this.#numbers.get(flag) ?? null;
  }

  /** Whether a switch was given. */
  has(flag: string): boolean {
    return this.#switches.has(flag);
  }
}
