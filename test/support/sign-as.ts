import { type AuthorizationTerms, signAuthorization } from "../../src/methods/exact-eip3009/authorization.ts";
import { signerAs } from "../../src/payer/sign-as.ts";
import type { TestPayerName } from "../../src/payer/test-payers.ts";

/** Signs a payment by EIP-3009 as a test payer, the way its kind of account signs. */
export const signAs = (payer: TestPayerName, terms: Omit<AuthorizationTerms, "from">) =>
  signAuthorization(signerAs(payer), terms);
