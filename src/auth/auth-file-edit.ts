import { AuthFileError } from "./checked-json.js";

/** STUB */
export interface ListedToken {
  readonly id: string;
  readonly created: string | null;
  readonly expires: string | null;
  readonly grants: readonly {
    readonly streams: readonly string[];
    readonly allow: readonly string[];
    readonly rate?: string;
  }[];
  readonly state: "valid" | "over" | "revoked";
}
/** STUB */
export function addToken(path: string, _wanted: object): Promise<string> {
  throw new AuthFileError(path);
}
/** STUB */
export function listTokens(path: string): Promise<readonly ListedToken[]> {
  throw new AuthFileError(path);
}
/** STUB */
export function revokeToken(path: string, _id: string): Promise<boolean> {
  throw new AuthFileError(path);
}
/** STUB */
export function addTicketKey(path: string, _id: string): Promise<void> {
  throw new AuthFileError(path);
}
/** STUB */
export function signTicket(path: string, _wanted: object): Promise<string> {
  throw new AuthFileError(path);
}
