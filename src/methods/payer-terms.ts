import type {
  Authorization,
  AuthorizationSigner,
  AuthorizationTerms,
} from "./exact-eip3009/authorization.ts";
import type { Permit } from "./permit2/permit.ts";
import type { PayerSigner, PermitSigner } from "./permit2/sign-permit.ts";

/** The terms that a payer signs. */
export type PayerTerms = AuthorizationTerms & {
  /** `extra` of the offer. */
  extra?: unknown;
  /** Members of the authorization that are to be signed as they stand here, right or wrong. */
  authorization?: Partial<Omit<Authorization, "from">> | undefined;
  /** The same of a permit. */
  permit?: Partial<Omit<Permit, "from">> | undefined;
};

/** Signs for a payer, whatever the payment method. */
export type PaymentSigner = PayerSigner | (AuthorizationSigner & PermitSigner);
