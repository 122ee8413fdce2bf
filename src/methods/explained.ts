import { channelsForPeople } from "./batch-settlement/channel-people.ts";
import type { ExplainedMethod, Terms } from "./for-people.ts";
import { methodOfOffer } from "./people.ts";
import { halves } from "./table-for-people.ts";
import { takenMethods } from "./taken-methods.ts";

/* The halves of payment methods that `explain` needs, with that of the scheme which web pages do not load. */

const explained: readonly [ExplainedMethod, ...ExplainedMethod[]] = [...halves, channelsForPeople];

/** The half of a method, by its name; the default one without a method. */
export function explainedHalfOf(method: string | undefined): ExplainedMethod {
  return explained.find(({ names }) => method !== undefined && names.includes(method)) ?? explained[0];
}

/** The half of a payload's method; of the default one where the payload is of none. */
export function halfOfPayload(payload: unknown): ExplainedMethod {
  return explainedHalfOf(takenMethods.find((method) => method.owns(payload))?.name);
}

/** The half of the method by which an offer is to be paid; that of the default method for another scheme. */
export function halfOfOffer(offer: Terms): ExplainedMethod {
  const method = methodOfOffer(offer) ?? takenMethods.find(({ scheme }) => scheme === offer.scheme);
  return explainedHalfOf(method?.name);
}
