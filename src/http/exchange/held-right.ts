import type { Caller } from "../../auth/rights/caller.js";

/** Whose right a request is served with. */
export interface RightHolder {
  /** Who sent it, as the auth file says it; `null` where nobody was asked. */
  caller: Caller | null;
  /** The stream that it is for; `null` for the list of streams. */
  readonly name: string | null;
  /** How often the rights had changed when the caller was found. */
  changesSeen: number;
}

/** Looks after the rights of live reads. */
export interface Rights {
  /** Calls `react` when the right of `holder` ends, at once when it has ended already, until it is released. */
  hold(holder: RightHolder, react: () => void): HeldRight;
}

/** A right that is looked after. */
export interface HeldRight {
  release(): void;
}
