import { KitError } from "../../util/errors.ts";

/** Why something went wrong, in one line for an operator. Errors of the chain name no URL. */
export function explainFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = causeOf(error);
  return cause === error.message ? cause : `${error.message.replace(/; try again$/, "")}: ${cause}`;
}

/** The cause alone, without the message that was made of it for the caller. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof KitError && error.cause instanceof Error ? error.cause.message : error.message;
}
