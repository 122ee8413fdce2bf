import type { Wanted } from "../util/given.ts";
import {
  type Authorization,
  type AuthorizationSigner,
  type AuthorizationTerms,
  authorizationMembers,
} from "./exact-eip3009/authorization.ts";
import type { Permit } from "./permit2/permit.ts";
import { type PayerSigner, type PermitSigner, permitMembers } from "./permit2/sign-permit.ts";

export type PayerTerms = AuthorizationTerms &
  SignedInstead & {
    /** `extra` of the offer. */
    extra?: unknown;
  };

/** Members that are signed in place of the terms. */
export type SignedInstead = {
  /** Members of the authorization that are to be signed as they stand here, right or wrong. */
  authorization?: Partial<Omit<Authorization, "from">> | undefined;
  /** The same of a permit. */
  permit?: Partial<Omit<Permit, "from">> | undefined;
};

/** The kinds of value that the members of each take. */
export const signedInstead = {
  authorization: authorizationMembers,
  permit: permitMembers,
} as const satisfies Record<keyof SignedInstead, Readonly<Record<string, Wanted>>>;

/** Signs for a payer, whatever the payment method. */
export type PaymentSigner = PayerSigner | (AuthorizationSigner & PermitSigner);
