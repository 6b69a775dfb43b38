import { createSecureServer } from "node:http2";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { readFileSync } from "node:fs";

/** What a bare server is started with. */
export interface SecureYardstickOrder {
  readonly over: "https" | "h2";
  readonly cert: string;
  readonly key: string;
}

/** An answer of either version, as far as it is used here. */
interface Answer {
  writeHead(status: number, headers?: Record<string, string>): unknown;
  write(chunk: Buffer | string): boolean;
  end(): unknown;
  on(event: "close", listener: () => void): unknown;
}

/** A request of either version. */
interface Request {
  readonly method?: string | undefined;
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  on(event: "end", listener: () => void): unknown;
}

/*
 * The limit of the platform over TLS: a bare node:https or node:http2 server that answers each append once it has read it,
 * stores nothing, and writes it to all its readers in a loop. It prints its port.
 */

const OFFSET_HEADERS = {
  "X-Content-Type-Options": "nosniff",
  "Cross-Origin-Resource-Policy": "cross-origin",
  "Content-Security-Policy": "sandbox; default-src 'none'",
  Vary: "Origin",
};

function serve({ over, cert, key }: SecureYardstickOrder): void {
  const readers = new Set<Answer>();
  let sent = 0;
  const handle = (request: Request, response: Answer): void => {
    if (request.method === "GET") {
      response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" });
      response.write(": welcome\n\n");
      readers.add(response);
      response.on("close", () => readers.delete(response));
      return;
    }
    const parts: Buffer[] = [];
    request.on("data", (chunk) => parts.push(chunk));
    request.on("end", () => {
      sent += 1;
      const offset = `0000000000000000_${String(sent).padStart(16, "0")}`;
      if (readers.size > 0) {
        const event = Buffer.from(
          `event: data\ndata:${Buffer.concat(parts).toString()}\n\nevent: control\ndata:{"streamNextOffset":"${offset}","upToDate":true}\nid: ${offset}\n\n`,
        );
        for (const reader of readers) reader.write(event);
      }
      response.writeHead(204, { ...OFFSET_HEADERS, "Stream-Next-Offset": offset });
      response.end();
    });
  };
  const files = { cert: readFileSync(cert), key: readFileSync(key) };
  const server = over === "h2" ? createSecureServer(files, handle) : createServer(files, handle);
  server.listen(0, "127.0.0.1", () => console.log(`port ${(server.address() as AddressInfo).port}`));
}

const [order] = process.argv.slice(2);
if (order !== undefined) serve(JSON.parse(order) as SecureYardstickOrder);
