// Answers with the files of the page that shows streams.

import { createHash } from "node:crypto";
import { packagedFiles, pageFolder } from "../../ops/packaged-files.js";
import { PAGE_PATH } from "../../net/page-address.js";
import { etagMatches } from "../../protocol/etag.js";
import { isLoopbackAddress } from "../../net/host-name.js";
import { EMPTY_BODY } from "../answer/respond.js";
import type { Context } from "../context/context.js";
import { CommonHeaders } from "../encoding/head.js";
import { problem } from "../encoding/problems.js";
import type { Exchange } from "../exchange/exchange.js";

/** What the page asks of the server itself, below the prefix. */
export const PAGE_FACTS_PATH = `${PAGE_PATH}facts`;

/** In place of what all other answers say: the page runs scripts, its own alone. */
const PAGE_HEADERS = new CommonHeaders([
  "X-Content-Type-Options",
  "nosniff",
  "Cross-Origin-Resource-Policy",
  "same-origin",
  "Cross-Origin-Opener-Policy",
  "same-origin",
  "Referrer-Policy",
  "no-referrer",
  "Content-Security-Policy",
  "default-src 'self'; worker-src 'none'; object-src 'none'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
]);

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};
const INDEX = "index.html";

/** A file as it is sent. */
interface PageFile {
  readonly contentType: string;
  readonly etag: string;
  readonly bytes: Buffer;
}

/** The page at `{prefix}__ds/ui/` (docs/api.md, The page). */
export class Page {
  readonly #context: Context;
  /** By name. Read once: later there may be no descriptor left, and no name of a request is ever a path. */
  readonly #files = readFiles(pageFolder());

  constructor(context: Context) {
    this.#context = context;
  }

  /** Whether there is a page for whoever asks: on this machine, or where the settings say so. */
  isFor({ req, isOwn, headers }: Exchange): boolean {
    const { localAddress } = req.socket;
    const { ui } = this.#context.settings;
    if (this.#files.size === 0) return false;
    if (ui !== "loopback") return ui;
    const isLocal = isOwn && localAddress !== undefined && isLoopbackAddress(localAddress);
    return isLocal && !headers.seemsProxied;
  }

  /** Answers GET and HEAD of a path below {@link PAGE_PATH}. */
  answer(exchange: Exchange, path: string): void {
    const { responder, inFlight } = this.#context;
    if (inFlight.over) return responder.refuse(exchange, problem("shutting-down"));
    const file = this.#files.get(path === "" ? INDEX : path);
    if (file === undefined) return responder.refuse(exchange, problem("unknown-path"));
    const { contentType, etag, bytes } = file;
    exchange.commonHeaders = PAGE_HEADERS;
    const headers = ["ETag", etag, "Cache-Control", "no-cache"];
    const { ifNoneMatch } = exchange.headers;
    if (ifNoneMatch !== null && etagMatches(ifNoneMatch, etag)) return responder.send(exchange, 304, headers, null);
    responder.send(exchange, 200, [...headers, "Content-Type", contentType], bytes);
  }

  /** Leads to the page whoever left out its last slash; relative, for proxies that serve it elsewhere. */
  redirect(exchange: Exchange): void {
    this.#context.responder.send(exchange, 308, ["Location", "ui/", "Cache-Control", "no-store"], EMPTY_BODY);
  }
}

function readFiles(folder: URL | null): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>();
  for (const [name, bytes] of packagedFiles(folder)) {
    const contentType = TYPES[name.slice(name.lastIndexOf(".") + 1)];
    if (contentType === undefined) continue;
    const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
    files.set(name, { contentType, etag, bytes });
  }
  return files;
}
