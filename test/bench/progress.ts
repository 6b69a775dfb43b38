/** Where progress is shown. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Says how far the benchmark is: on a terminal in one line that each step changes, elsewhere in a line for each question. */
export class Progress {
  readonly #output: ProgressOutput;
  readonly #questions: number;
  #asked = 0;
  #title = "";

  constructor(output: ProgressOutput, questions: number) {
    this.#output = output;
    this.#questions = questions;
  }

  /** The next question is asked. */
  question(title: string): void {
    this.#asked += 1;
    this.#title = `[${this.#asked}/${this.#questions}] ${title}`;
    this.#output.write(this.#output.isTTY === true ? `\r\u001b[K${this.#title}` : `${this.#title}\n`);
  }

  /** A step of the question that was last asked. */
  step(what: string): void {
    if (this.#output.isTTY === true) this.#output.write(`\r\u001b[K${this.#title}: ${what}`);
  }

  /** Takes the line away, for others to be written. */
  clear(): void {
    if (this.#output.isTTY === true) this.#output.write("\r\u001b[K");
  }
}
