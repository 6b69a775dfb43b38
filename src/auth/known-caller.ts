import type { NameRange } from "../protocol/names/name-range.js";
import type { VerifiedJwt } from "./jwt/verify.js";
import type { Caller, Right } from "./rights/caller.js";
import type { ClientCertificate } from "./rights/credentials.js";
import type { Operation } from "./rights/operation.js";
import type { Ticket } from "./ticket.js";

/** What a caller is known by, without the secret that it showed. */
export type Basis =
  | { readonly kind: "public" }
  | { readonly kind: "token"; readonly id: string; readonly hash: Buffer }
  | {
      readonly kind: "jwt";
      readonly jwt: VerifiedJwt;
      readonly sub: string | null;
      readonly jti: string | null;
      readonly issuedAtMs: number | null;
      /** What it takes of memory, about, in bytes, with its rights: nobody shares these. */
      readonly weight: number;
    }
  | { readonly kind: "certificate"; readonly certificate: ClientCertificate }
  | { readonly kind: "ticket"; readonly ticket: Ticket; readonly name: string; readonly keyPrint: string };

/** What decides what a caller may do. */
export interface Rights {
  rightTo(operation: Operation, name: string): Right | null;
  mayAnywhere(operation: Operation): boolean;
  mayEverywhere(operation: Operation): boolean;
  rangesOf(operation: Operation): readonly NameRange[];
}

/** A caller, and what it is known by. */
export class KnownCaller implements Caller {
  readonly id: string | null;
  readonly endsAtMs: number;
  readonly askedBy: string | null;
  readonly #rights: Rights;
  readonly #basis: Basis;

  constructor(id: string | null, endsAtMs: number, rights: Rights, basis: Basis, askedBy: string | null = null) {
    this.id = id;
    this.endsAtMs = endsAtMs;
    this.askedBy = askedBy;
    this.#rights = rights;
    this.#basis = basis;
  }

  /** What `caller` is known by; `null` for one that was made elsewhere. */
  static basisOf(caller: Caller): Basis | null {
    return caller instanceof KnownCaller ? caller.#basis : null;
  }

  /** What remembering it takes of memory, about, in bytes; 0 where that is little, or shared with others. */
  get weight(): number {
    return this.#basis.kind === "jwt" ? this.#basis.weight : 0;
  }

  rightTo(operation: Operation, name: string): Right | null {
    return this.#rights.rightTo(operation, name);
  }

  mayAnywhere(operation: Operation): boolean {
    return this.#rights.mayAnywhere(operation);
  }

  mayEverywhere(operation: Operation): boolean {
    return this.#rights.mayEverywhere(operation);
  }

  rangesOf(operation: Operation): readonly NameRange[] {
    return this.#rights.rangesOf(operation);
  }
}
