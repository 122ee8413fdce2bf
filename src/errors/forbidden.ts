import { KitError } from "./base.ts";

/** The key is good, but lacks what the call needs: a scope, or a recipient for the network. HTTP 403. */
export class ForbiddenError extends KitError {
  override readonly name = "ForbiddenError";
}
