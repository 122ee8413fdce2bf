import { KitError } from "./base.ts";

/** An `Idempotency-Key` came again with another body. HTTP 422. */
export class IdempotencyMismatchError extends KitError {
  override readonly name = "IdempotencyMismatchError";
}
