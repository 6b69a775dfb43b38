// Says which right each request needs.

import type { Caller, Right } from "../../auth/rights/caller.js";
import type { Operation } from "../../auth/rights/operation.js";
import { decodeName } from "../../protocol/names/stream-name.js";
import { isTrue } from "../request/commands.js";
import type { RequestHeaders } from "../request/request-headers.js";

/** What a request is, as far as its rights depend on it. */
export interface AskedRequest {
  readonly method: string;
  readonly headers: RequestHeaders;
  /** The stream's. */
  readonly name: string;
  /** In front of a fork's source. */
  readonly prefix: string;
}

/** The right with which `caller` may send a request on a stream, or the operation that it lacks (docs/auth.md). */
export function neededRight(caller: Caller, { method, headers, name, prefix }: AskedRequest): Right | Operation {
  switch (method) {
    case "PUT":
      return (
        lacking(caller, "close", name, isTrue(headers.streamClosed)) ??
        lacking(caller, "read", sourceOf(headers.streamForkedFrom, prefix)) ??
        rightTo(caller, "create", name)
      );
    case "POST": {
      const closes = isTrue(headers.streamClosed);
      // A body of unknown length counts as one.
      if (closes && !headers.hasBody) return rightTo(caller, "close", name);
      return lacking(caller, "close", name, closes) ?? rightTo(caller, "append", name);
    }
    case "DELETE":
      return rightTo(caller, "delete", name);
    default:
      return rightTo(caller, "read", name);
  }
}

function rightTo(caller: Caller, operation: Operation, name: string): Right | Operation {
  return caller.rightTo(operation, name) ?? operation;
}

/** `operation` where it is asked for and the caller may not; `null` where it may, and where there is no name. */
function lacking(caller: Caller, operation: Operation, name: string | null, isAsked = true): Operation | null {
  return !isAsked || name === null || caller.rightTo(operation, name) !== null ? null : operation;
}

/** The name of a fork's source; `null` where there is none, and where the request is refused for it anyway. */
function sourceOf(forkedFrom: string | null, prefix: string): string | null {
  if (forkedFrom === null || !forkedFrom.startsWith(prefix)) return null;
  const decoded = decodeName(forkedFrom.slice(prefix.length));
  return "fault" in decoded ? null : decoded.name;
}
