import { eip3009ForPeople } from "./exact-eip3009/eip3009-people.ts";
import type { MethodForPeople } from "./for-people.ts";
import { permit2ForPeople } from "./permit2/permit2-people.ts";

/** The user-facing parts of the payment methods, the default one first. */
export const halves: readonly [MethodForPeople, ...MethodForPeople[]] = [eip3009ForPeople, permit2ForPeople];
