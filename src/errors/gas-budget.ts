import { KitError } from "./base.ts";

/**
 * The organization's gas budget of the day does not hold another settlement. It says nothing of the payment, of which
 * nothing was signed. HTTP 429.
 */
export class GasBudgetError extends KitError {
  override readonly name = "GasBudgetError";
  /** Until it may be worth trying again. */
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds: number) {
    super(message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}
