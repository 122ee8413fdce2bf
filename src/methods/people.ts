import { membersOf } from "../util/json.ts";
import type { MethodForPeople, Terms } from "./for-people.ts";
import type { Method } from "./method.ts";
import { methods, methodsOf } from "./methods.ts";
import { halves } from "./table-for-people.ts";

/** The half of a payload's method; of the default one where the payload is of none. */
export function halfOfPayload(payload: unknown): MethodForPeople {
  return halfOf(methods.find((method) => method.owns(payload)));
}

/** The half of the method by which an offer is to be paid. */
export function halfOfOffer({ scheme, extra }: Terms): MethodForPeople {
  const { assetTransferMethod } = membersOf(extra);
  const able = methodsOf(scheme);
  return halfOf(able.find(({ transfer }) => transfer === assetTransferMethod) ?? able[0]);
}

/** The half of a method; the default one without a method. */
export function halfOf(method: Method | undefined): MethodForPeople {
  return halves.find(({ names }) => method !== undefined && names.includes(method.name)) ?? halves[0];
}
