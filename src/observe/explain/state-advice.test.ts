import { expect, test } from "vitest";
import { refusals } from "../../protocol/refusals.ts";
import { explainRefusal } from "./explain-refusal.ts";

const contract = `0x${"f0".repeat(20)}` as const;
const hash = `0x${"ab".repeat(32)}` as const;

test.each([
  [refusals.payerBlacklisted(), "another account"],
  [refusals.contractBlacklisted(), "those who run the facilitator"],
  [refusals.recipientBlacklisted(contract), "org set-recipient"],
  [refusals.assetPaused(), "later"],
  [refusals.beingSettled(), "Do not sign again"],
  [refusals.settledBefore(hash), "if that was done, serve nothing"],
  [refusals.failed(hash, "reverted"), "only then sign again"],
  [refusals.usedHere(), "serve nothing if that was done"],
  [refusals.usedOnChain(), "before the payer signs again"],
  [refusals.payerHasCode(contract), "from a plain account"],
])(
  "“$message” is explained by its own cause, not by all that share its reason",
  ({ reason, message }, fix) => {
    const context = { contracts: { mainnet: contract, testnet: contract } };
    const [explanation] = explainRefusal({ reason, message, request: undefined, at: 0 }, context);
    expect(explanation?.title).toBe(message);
    expect(explanation?.fix).toContain(fix);
    expect(explanation?.why).not.toContain("a party is blacklisted");
    expect(explanation?.why).not.toContain("is not the payer's");
  },
);
