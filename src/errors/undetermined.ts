import { KitError } from "./base.ts";

/**
 * "We could not tell": the RPC is down, the operator has no gas money, anything unforeseen. It never becomes a
 * verdict; over HTTP it is a 503 that may be tried again.
 */
export class UndeterminedError extends KitError {
  override readonly name = "UndeterminedError";
}
