import { permit2Reasons } from "../../protocol/catalogue.ts";
import type { PaymentWords } from "../../protocol/signed-payment.ts";

/** The members of a permit, as messages name them. Both bounds are inside of the window. */
export const permit2Words: PaymentWords = {
  payTo: "permit2Authorization.witness.to",
  limit: "permit2Authorization.permitted.amount",
  start: "witness.validAfter",
  end: "deadline",
  startsSaid: "from",
  endsSaid: "until",
  includesBounds: true,
  reasons: permit2Reasons,
  judge: "Permit2",
  domain: () => 'domain "Permit2"',
};
