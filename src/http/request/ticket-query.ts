// Finds the ticket in a query, and refuses other credentials there.

import { decodeQueryText } from "./query.js";
import { problem, type Problem } from "../encoding/problems.js";

/** What a query brings of credentials. */
export interface TicketParameter {
  /** The parameter `ticket`; `null` when it is absent. */
  readonly value: string | null;
}

const NONE: TicketParameter = { value: null };

/** A token of this server, or what every JWT begins with: `{"` in base64url. */
const BEARER = /^(?:Bearer\s+)?(?:sd_[a-z\d-]{1,64}_[\w-]{43}|eyJ[\w-]*\.[\w-]+\.[\w-]*)$/i;

/** Most queries: nothing in them can be a credential. */
const PLAIN = /^offset=[-\d_]*(?:&live=[a-z-]{3,9})?$/;

/** What every other query has that holds a credential: nearly all others are done with this. */
const SUSPECT = /[%+]|ticket|token|sd_|eyj/i;

const IN_QUERY = problem("token-in-query", {
  detail: "URLs end up in logs and histories: send the token in the header Authorization, or ask for a ticket.",
});

/** The parameter `ticket` of a query without its `?`. A bearer token in any parameter is refused. */
export function readTicket(query: string): TicketParameter | Problem {
  if (query === "" || PLAIN.test(query) || !SUSPECT.test(query)) return NONE;
  let ticket: string | null = null;
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    const key = decodeQueryText(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? "" : decodeQueryText(pair.slice(equals + 1));
    if (key === "access_token" || (value !== null && BEARER.test(value))) return IN_QUERY;
    if (key !== "ticket") continue;
    if (ticket !== null) return problem("invalid-query", { detail: "The parameter ticket came more than once." });
    if (value === null)
      return problem("invalid-query", { detail: "The parameter ticket has an invalid percent-encoding." });
    ticket = value;
  }
  return ticket === null ? NONE : { value: ticket };
}
