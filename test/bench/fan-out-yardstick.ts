import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/*
 * The limit of the platform for one stream with many readers: a bare node:http server that keeps its readers in a list,
 * and for each POST writes one event to all of them, as a loop over `res.write` does it. It prints its port.
 */

const readers = new Set<ServerResponse>();
const HEAD = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" };
let sent = 0;

const server = createServer((request, response) => {
  if (request.method === "GET") {
    response.writeHead(200, HEAD);
    response.write(": welcome\n\n");
    readers.add(response);
    response.on("close", () => readers.delete(response));
    return;
  }
  const parts: Buffer[] = [];
  request.on("data", (chunk: Buffer) => parts.push(chunk));
  request.on("end", () => {
    sent += 1;
    const offset = String(sent).padStart(16, "0");
    const event = Buffer.from(
      `event: data\ndata:${Buffer.concat(parts).toString()}\n\nevent: control\ndata:{"streamNextOffset":"0000000000000000_${offset}","upToDate":true}\nid: 0000000000000000_${offset}\n\n`,
    );
    for (const reader of readers) reader.write(event);
    response.writeHead(204);
    response.end();
  });
});
server.listen(0, "127.0.0.1", () => console.log(`port ${(server.address() as AddressInfo).port}`));
