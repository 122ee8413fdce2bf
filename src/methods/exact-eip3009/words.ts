import type { PaymentWords } from "../../protocol/signed-payment.ts";

/** The members of EIP-3009, as messages name them. Both bounds are outside of the window. */
export const eip3009Words: PaymentWords = {
  payTo: "authorization.to",
  limit: "authorization.value",
  start: "validAfter",
  end: "validBefore",
  startsSaid: "after",
  endsSaid: "before",
  includesBounds: false,
  reasons: {},
  judge: "The token",
  domain: ({ name, version }) => `name "${name}", version "${version}"`,
};
