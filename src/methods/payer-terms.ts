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
    /** The offer's `extra`. */
    extra?: unknown;
  };

/** Fields that are signed in place of the terms. */
export type SignedInstead = {
  /** Fields of the authorization to sign exactly as given, right or wrong. */
  authorization?: Partial<Omit<Authorization, "from">> | undefined;
  /** The same for a permit. */
  permit?: Partial<Omit<Permit, "from">> | undefined;
};

/** The type of each field. */
export const signedInstead = {
  authorization: authorizationMembers,
  permit: permitMembers,
} as const satisfies Record<keyof SignedInstead, Readonly<Record<string, Wanted>>>;

/** Signs for a payer with any payment method. */
export type PaymentSigner = PayerSigner | (AuthorizationSigner & PermitSigner);
