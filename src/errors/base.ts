/**
 * The root of every error this project throws. `message` is one sentence for whoever called; `hints` are lines
 * for the operator on what to do about it; `cause` is always what led to it.
 */
export class KitError extends Error {
  override readonly name: string = "KitError";
  readonly hints: readonly string[];

  constructor(message: string, options: { cause?: unknown; hints?: readonly string[] } = {}) {
    super(message, { cause: options.cause });
    this.hints = options.hints ?? [];
  }
}
