import { membersOf } from "../util/json.ts";
import type { MethodForPeople, Terms } from "./for-people.ts";
import type { Method, PayableMethod } from "./method.ts";
import { methodsOf, schemes, shortNameOf } from "./method-lists.ts";
import type { MethodView } from "./method-view.ts";
import { methods } from "./methods.ts";
import { halves } from "./table-for-people.ts";

/** The half of a payload's method; of the default one where the payload is of none. */
export function halfOfPayload(payload: unknown): MethodForPeople {
  return halfOf(methods.find((method) => method.owns(payload)));
}

/** The method by which an offer is to be paid; undefined for another scheme. */
export function methodOfOffer({ scheme, extra }: Terms): PayableMethod | undefined {
  const { assetTransferMethod } = membersOf(extra);
  const able = methodsOf(scheme);
  return able.find(({ transfer }) => transfer === assetTransferMethod) ?? able[0];
}

/** Its half; that of the default method for another scheme. */
export function halfOfOffer(offer: Terms): MethodForPeople {
  return halfOf(methodOfOffer(offer));
}

/** The half of a method; the default one without a method. */
export function halfOf(method: Pick<Method, "name"> | undefined): MethodForPeople {
  return halves.find(({ names }) => method !== undefined && names.includes(method.name)) ?? halves[0];
}

/** Describes a payment method to forms and snippets. */
export function viewOf(method: Method): MethodView {
  const { scheme, transfer, versions, takesLess, words } = method;
  const { label, option } = halfOf(method);
  const isUsual = methodsOf(scheme)[0] === method;
  const terms = { ...(scheme !== schemes[0] && { scheme }), ...(!isUsual && { method: transfer }) };
  return {
    name: shortNameOf(method),
    label: `${scheme} · ${label}`,
    terms,
    transfer,
    versions: [...versions],
    takesLess,
    option,
    end: words.end,
  };
}
