import { membersOf } from "../util/json.ts";
import { eip3009ForPeople } from "./exact-eip3009/eip3009-people.ts";
import type { MethodForPeople, Terms } from "./for-people.ts";
import type { Method } from "./method.ts";
import { methods } from "./methods.ts";
import { permit2ForPeople } from "./permit2/permit2-people.ts";

/** One for each way to move tokens; the first is the default one. */
const halves: readonly [MethodForPeople, ...MethodForPeople[]] = [eip3009ForPeople, permit2ForPeople];

/** The half of a payload's method; of the default one where the payload is of none. */
export function halfOfPayload(payload: unknown): MethodForPeople {
  return halfOf(methods.find((method) => method.owns(payload)));
}

/** The half of the method by which an offer is to be paid. */
export function halfOfOffer({ scheme, extra }: Terms): MethodForPeople {
  const { assetTransferMethod } = membersOf(extra);
  const able = methods.filter((method) => method.scheme === scheme);
  // Where none is named, the last of a scheme is meant.
  return halfOf(able.find(({ transfer }) => transfer === assetTransferMethod) ?? able.at(-1));
}

/** The half of a method. */
export function halfOf(method: Pick<Method, "transfer"> | undefined): MethodForPeople {
  return halves.find((half) => half.transfer === method?.transfer) ?? halves[0];
}
