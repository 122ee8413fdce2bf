import { askViews, expectWord } from "../../../chain/chain-reader.ts";
import { viewGas } from "../../../chain/views.ts";
import { goesStraight, isErc6492 } from "../../../protocol/signed-payment.ts";
import type { Recovery, Settling } from "../../on-chain/settling.ts";
import { createIsUsed } from "../../on-chain/use-reader.ts";
import { exactEip3009 } from "../eip3009-method.ts";
import { settlesSeveral } from "./eip3009-calls.ts";
import { findPayout, provesForwarding, readSettlements } from "./eip3009-proof.ts";
import { authorizationUse, explainRevert, forwardLimitOf, stateOf } from "./eip3009-state.ts";
import {
  countBatch,
  effectOf,
  findStraightPayout,
  forwardTransaction,
  readStraightPayments,
  settleTransaction,
  usualForward,
  usualSettle,
} from "./eip3009-transaction.ts";
import { findDirectSubmission, receivedOf } from "./received-transfers.ts";

/** `forwardReceived`, for what others submitted. */
export const exactEip3009Recovery: Recovery = {
  transaction: (call, { facilitatorContract: to }) => ({ to, ...forwardTransaction(call) }),
  usual: usualForward,
  proves: (receipt, { facilitatorContract }, call) =>
    provesForwarding(receipt, facilitatorContract, receivedOf(call)),

  async limit({ reader, network: { facilitatorContract } }, asset) {
    const views = forwardLimitOf(facilitatorContract, asset);
    const [limit, available] = await askViews(reader, views, viewGas, undefined);
    return {
      limit: BigInt(expectWord(reader, "forwardLimit of the facilitator contract", limit)),
      available: BigInt(expectWord(reader, "availableToForward of the facilitator contract", available)),
    };
  },

  findDirectSubmission,
};

/**
 * EIP-3009: through the facilitator contract, or straight to where it was signed to. Which of the two follows from the
 * payment, each time.
 */
export const exactEip3009Settling: Settling = {
  method: exactEip3009,

  transaction: settleTransaction,
  deploysWallets: true,
  // A wallet that is deployed first is known by its revert alone.
  effect: ({ payment }, network) =>
    goesStraight(payment, network) && !isErc6492(payment.signature) ? effectOf(payment) : undefined,
  batchKey({ payment }, network) {
    const asset = payment.asset.toLowerCase();
    // The transaction deploys one wallet.
    if (isErc6492(payment.signature)) return `${asset} ${payment.payer} ${payment.nonce}`;
    return `${asset} ${goesStraight(payment, network) ? "straight" : "through the contract"}`;
  },
  count: countBatch,
  settlesSeveral,
  usual: usualSettle,

  prove(receipt, network) {
    const proofs = readSettlements(receipt, network.facilitatorContract);
    const wentStraight = readStraightPayments(receipt);
    return {
      find(call) {
        if (!goesStraight(call.payment, network)) return proofs.find(receivedOf(call));
        return wentStraight(call.payment) ? { settled: true } : proofs.findFailure(receivedOf(call));
      },
    };
  },
  findPayout: (chain, search) =>
    goesStraight(search.payment, chain.network)
      ? findStraightPayout(chain, search)
      : findPayout(chain, search),

  stateOf,
  explain: explainRevert,
  isUsed: createIsUsed(authorizationUse),

  recovery: exactEip3009Recovery,
};
