/** What the right behind a request means while the request is served. */
export interface Standing {
  /** Whether the answer is for its caller alone: caches that others share must not keep it. */
  readonly isPrivate: boolean;
  /** Who asked, for logs and where live readers are counted; `null` for those without a credential. */
  readonly callerId: string | null;
  /** Calls `react` when the right ends, at once when it has ended already. For a live read, until {@link release}. */
  onEnd(react: () => void): void;
  /** The request is over. */
  release(): void;
}
