import { channelsForPeople } from "./batch-settlement/channel-people.ts";
import type { ExplainedMethod, Terms } from "./for-people.ts";
import { methodOfOffer } from "./people.ts";
import { halves } from "./table-for-people.ts";
import { takenMethods } from "./taken-methods.ts";

/* The parts of payment methods that `explain` needs, including the scheme that web pages do not load. */

const explained: readonly [ExplainedMethod, ...ExplainedMethod[]] = [...halves, channelsForPeople];

/** The `explain` part of the method with this name; that of the default method if there is none. */
export function explainedHalfOf(method: string | undefined): ExplainedMethod {
  return explained.find(({ names }) => method !== undefined && names.includes(method)) ?? explained[0];
}

/** The `explain` part of the method that a payload belongs to; that of the default method if it belongs to none. */
export function halfOfPayload(payload: unknown): ExplainedMethod {
  return explainedHalfOf(takenMethods.find((method) => method.owns(payload))?.name);
}

/** The `explain` part of the method that pays an offer; that of the default method if its scheme is unknown. */
export function halfOfOffer(offer: Terms): ExplainedMethod {
  const method = methodOfOffer(offer) ?? takenMethods.find(({ scheme }) => scheme === offer.scheme);
  return explainedHalfOf(method?.name);
}
