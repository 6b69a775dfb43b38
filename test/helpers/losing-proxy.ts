import type http from "node:http";
import { buffer } from "node:stream/consumers";
import type { TestScope } from "./process.js";
import { ask } from "./real-server.js";
import { serverAt } from "./server-at.js";

/**
 * The origin of a proxy that passes each request on to the server that `to` says, and breaks the connection instead of
 * passing on an answer that `loses` picks: what was asked is done by then.
 */
export async function losingProxy(
  scope: TestScope,
  to: () => string | Promise<string>,
  loses: (method: string) => boolean | Promise<boolean>,
): Promise<string> {
  const passOn = async (req: http.IncomingMessage, res: http.ServerResponse): Promise<void> => {
    const { url = "", method = "" } = req;
    const headers = Object.fromEntries(Object.entries(req.headers).map(([name, value]) => [name, String(value)]));
    const reply = await ask(new URL(url, await to()).href, method, { headers, body: await buffer(req) });
    if (await loses(method)) res.destroy();
    else res.writeHead(reply.status, reply.headers).end(reply.body, "latin1");
  };
  return serverAt(scope, (req, res) => void passOn(req, res));
}
