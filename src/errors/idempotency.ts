import { KitError } from "./base.ts";

/** An `Idempotency-Key` came again with another body. HTTP 422. */
export class IdempotencyMismatchError extends KitError {
  override readonly name = "IdempotencyMismatchError";

  constructor() {
    super("This Idempotency-Key was used with another body; use a new key for a new payment");
  }
}
