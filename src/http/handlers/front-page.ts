// Answers `/` and the prefix with a page that says what server this is.

import { firstRequest } from "../../ops/first-request.js";
import { packageVersion } from "../../ops/version.js";
import type { Settings } from "../../options.js";
import { preferredType } from "../../protocol/accept.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";
import { PAGE_PATH } from "../../net/page-address.js";
import type { Page } from "./page.js";
import { baseOf } from "../answer/location.js";
import { problem } from "../encoding/problems.js";

const PROTOCOL_URL = "https://github.com/durable-streams/durable-streams/blob/main/PROTOCOL.md";

const RENDERERS = {
  "text/plain": textOf,
  "text/html": htmlOf,
  "application/json": (facts: Facts) => `${JSON.stringify(facts, null, 2)}\n`,
} as const;

/** `GET` of `/` and of the prefix: what server this is, and how to begin. JSON where the client asks for it. */
export class FrontPage {
  readonly #context: Context;
  readonly #page: Page;
  /** Read once: later there may be no descriptor left. */
  readonly #version = packageVersion();

  constructor(context: Context, page: Page) {
    this.#context = context;
    this.#page = page;
  }

  /** Answers GET and HEAD. */
  answer(exchange: Exchange): void {
    const { responder, inFlight, settings } = this.#context;
    if (inFlight.over) return responder.refuse(exchange, problem("shutting-down"));
    const type = preferredType(exchange.req.headers.accept, ["text/plain", "text/html", "application/json"]);
    const contentType = type === "application/json" ? type : `${type}; charset=utf-8`;
    const headers = ["Content-Type", contentType, "Vary", "Accept", "Cache-Control", "no-store"];
    const facts = factsOf(exchange, this.#version, settings, this.#page.isFor(exchange));
    responder.send(exchange, 200, headers, Buffer.from(RENDERERS[type](facts)));
  }
}

/** The contents of the page, in the form of its JSON. `streams` is the URL to which a stream's name is appended. */
type Facts = ReturnType<typeof factsOf>;

function factsOf(exchange: Exchange, version: string, { prefix, readOnly, auth }: Settings, hasPage: boolean) {
  const base = baseOf(exchange);
  const streams = `${base}${prefix}`;
  return {
    server: "streamdir",
    version,
    streams,
    documentation: "https://www.npmjs.com/package/streamdir" + (version === "unknown" ? "" : `/v/${version}`),
    protocol: PROTOCOL_URL,
    health: `${base}/health`,
    page: hasPage ? `${streams}${PAGE_PATH}` : null,
    try: firstRequest(streams, { readOnly, needsToken: auth !== "" }),
  };
}

function textOf({ version, streams, documentation, protocol, health, page, try: attempt }: Facts): string {
  return `streamdir ${version}: append-only byte streams over HTTP

Streams:        ${streams}NAME
Try:            ${attempt}
Documentation:  ${documentation}
Protocol:       ${protocol}
Health:         ${health}
${page === null ? "" : `See them:       ${page}\n`}`;
}

function htmlOf({ version, streams, documentation, protocol, health, page, try: attempt }: Facts): string {
  const link = (url: string): string => `<a href="${escaped(url)}">${escaped(url)}</a>`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>streamdir ${escaped(version)}</title>
<h1>streamdir ${escaped(version)}</h1>
<p>Append-only byte streams over HTTP, at <code>${escaped(streams)}NAME</code>.
${page === null ? "" : `<p>See them: ${link(page)}\n`}<p>Try:
<pre>${escaped(attempt)}</pre>
<p>Documentation: ${link(documentation)}
<p>Protocol: ${link(protocol)}
<p>Health: ${link(health)}
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
