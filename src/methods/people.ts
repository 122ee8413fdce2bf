import { membersOf } from "../util/json.ts";
import type { MethodForPeople, Terms } from "./for-people.ts";
import type { Method, PayableMethod } from "./method.ts";
import { methodsOf, schemes, shortNameOf } from "./method-lists.ts";
import type { MethodView } from "./method-view.ts";
import { halves } from "./table-for-people.ts";

/** The method that pays an offer; undefined if its scheme is unknown. */
export function methodOfOffer({ scheme, extra }: Terms): PayableMethod | undefined {
  const { assetTransferMethod } = membersOf(extra);
  const able = methodsOf(scheme);
  return able.find(({ transfer }) => transfer === assetTransferMethod) ?? able[0];
}

/** The user-facing part of a method; that of the default method if none is given. */
export function halfOf(method: Pick<Method, "name"> | undefined): MethodForPeople {
  return halves.find(({ names }) => method !== undefined && names.includes(method.name)) ?? halves[0];
}

/** Describes a payment method for forms and snippets. */
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
