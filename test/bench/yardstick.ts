import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** An answer that the yardstick gives again and again. */
export interface Answer {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** The body is so many bytes. */
  readonly bodyBytes: number;
}

/** By method; `CLOSE` is a POST with `Stream-Closed`. */
export type Answers = Readonly<Record<string, Answer>>;

/*
 * The limit of the platform: a bare node:http server that reads each request to its end, gives the answer that streamdir
 * gave to one like it, and stores nothing. It gets the answers as its only argument and prints its port.
 */

function serve(answers: Answers): void {
  const ready = new Map(
    Object.entries(answers).map(([key, { status, headers, bodyBytes }]) => [
      key,
      { status, headers: [...headers], body: Buffer.alloc(bodyBytes, "x") },
    ]),
  );
  const reply = (response: ServerResponse, key: string): void => {
    const answer = ready.get(key);
    if (answer === undefined) throw new Error(`there is no answer to ${key}`);
    response.writeHead(answer.status, answer.headers);
    response.end(answer.body.length > 0 ? answer.body : undefined);
  };
  const server = createServer((request, response) => {
    const { method = "GET" } = request;
    if (method === "GET" || method === "HEAD") return reply(response, method);
    const key = request.headers["stream-closed"] === undefined ? method : "CLOSE";
    request.on("data", () => undefined);
    request.on("end", () => reply(response, key));
  });
  server.listen(0, "127.0.0.1", () => console.log(`port ${(server.address() as AddressInfo).port}`));
}

const [answers] = process.argv.slice(2);
if (answers !== undefined) serve(JSON.parse(answers) as Answers);
