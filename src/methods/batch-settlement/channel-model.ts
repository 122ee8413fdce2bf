import type { Invalid } from "../../protocol/catalogue.ts";
import { sameAddress } from "../../protocol/hex.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { zeroAddress } from "../../protocol/wire-values.ts";
import { createBoundedMap } from "../../util/cache.ts";
import { refuseForeign } from "../actions.ts";
import type {
  ModelAccounts,
  ModelFacts,
  ModelledPayment,
  ModelPlace,
  PaymentModel,
} from "../payment-model.ts";
import { type ChannelSource, stateJson } from "./channel-source.ts";
import { createEscrowModel, type EscrowModel, ownSignature } from "./escrow-model.ts";
import { identifyByContent, identifyPayout } from "./identify.ts";
import { ownedChannels } from "./owners.ts";
import { channelMethods, channelOf, claimOf, depositOf, payoutOf, refundOf } from "./payloads.ts";
import { claimFails, planClaim } from "./plan-claim.ts";
import { payoutReverts, planPayout } from "./plan-payout.ts";
import { planRefund, refundReverts } from "./plan-refund.ts";
import { depositReverts, judgeDeposit, judgeVoucher } from "./vouchers.ts";

/*
 * Channels without a chain, for the fixtures: the service's own checks, on a model of the settlement contract.
 */

/** The organization that opened a channel, with the channel's receiver and token. */
type Owner = { organizationId: string; payTo: SignedPayment["payTo"]; asset: SignedPayment["asset"] };

/** The maximum number of channels; a long-running server forgets the oldest ones. */
const mostKept = 10_000;

export function createChannelModel(accounts: ModelAccounts): PaymentModel {
  const escrows = new Map<number, EscrowModel>();
  const owners = createBoundedMap<string, Owner>(mostKept);
  const ownerKey = (chainId: number, id: string) => `${chainId} ${id}`;

  function escrowOf(chainId: number): EscrowModel {
    const escrow = escrows.get(chainId) ?? createEscrowModel(chainId, accounts);
    escrows.set(chainId, escrow);
    return escrow;
  }

  function withAuthorizers(network: ModelPlace["network"]): ChannelSource["network"] {
    const { receiverAuthorizer: address } = network;
    return address === undefined
      ? network
      : { ...network, authorizers: [{ address, sign: () => ownSignature }] };
  }

  function sourceOf({ network, now }: ModelPlace): ChannelSource {
    const escrow = escrowOf(network.chainId);
    return {
      network: withAuthorizers(network),
      recover: accounts.recover,
      askWallet: async (...given) => accounts.askWallet(network.chainId, ...given),
      head: async () => ({ number: 0n, timestamp: now }),
      readChannels: async (ids) => ids.map(escrow.channel),
      readReceiver: async (receiver, token) => escrow.receiver(receiver, token),
      explainClaim: async (...given) => escrow.explainClaim(...given),
    };
  }

  /** The refusal for an organization that may not use these channels, as in the service's ledger. */
  async function refuseStranger(place: ModelPlace, payment: SignedPayment): Promise<Invalid | undefined> {
    const { network, organizationId, recipient } = place;
    const owned = ownedChannels(payment, withAuthorizers(network));
    return (
      owned &&
      refuseForeign(owned, {
        organizationId,
        recipient,
        ownersOf: (ids) => ids.map((id) => owners.get(ownerKey(network.chainId, id))?.organizationId),
        hasReceiver: (receiver, token) =>
          [...owners.values()].some(
            (owner) =>
              owner.organizationId === organizationId &&
              sameAddress(owner.payTo, receiver) &&
              sameAddress(owner.asset, token),
          ),
      })
    );
  }

  return {
    identify(place, payment, known) {
      switch (payment.method) {
        case channelMethods.settle:
          return identifyPayout(sourceOf(place), payment, known);
        case channelMethods.claim:
        case channelMethods.refund:
          return identifyByContent(sourceOf(place), payment, known);
        default:
          return Promise.resolve(payment);
      }
    },

    async judge(place, payment, facts) {
      const { chainId } = place.network;
      const judged = await judge(sourceOf(place), payment, facts);
      const isRefused = "reason" in judged;
      const { payment: planned = payment, extra, revert }: Partial<Judged> = isRefused ? {} : judged;
      const escrow = escrowOf(chainId);
      let refunded = 0n;
      return {
        foreign: await refuseStranger(place, payment),
        refusal: isRefused ? judged : undefined,
        revert,
        isVerifiedAlone: payment.method === channelMethods.voucher,
        extra,
        apply(organizationId) {
          const { method, payTo, asset, limit } = planned;
          const undo = escrow.undoable(() => {
            if (method === channelMethods.claim) escrow.claim(claimOf(planned).claims);
            else if (method === channelMethods.settle) escrow.settle(payTo, asset);
            else if (method === channelMethods.refund) {
              const { voucher, claims, amount } = refundOf(planned);
              escrow.claim(claims);
              refunded = escrow.refund(voucher.channelId, amount);
            } else if (method !== channelMethods.voucher) {
              const { channelId } = depositOf(planned).voucher;
              const key = ownerKey(chainId, channelId);
              if (owners.get(key) === undefined) owners.set(key, { organizationId, payTo, asset });
              escrow.deposit(channelId, limit);
            }
          });
          return { returned: refunded, undo };
        },
        describe(transaction) {
          const { method, limit } = planned;
          const stateOf = () => {
            const { channelId } = channelOf(planned).voucher;
            return { channelState: stateJson(channelId, escrow.channel(channelId)) };
          };
          switch (method) {
            case channelMethods.claim: {
              const { rejected } = claimOf(planned);
              if (rejected.length === 0) return {};
              return { invalid: claimFails(rejected, `; the others were claimed by ${transaction}`) };
            }
            case channelMethods.settle:
              return { amount: payoutOf(planned).owed };
            case channelMethods.refund:
              return { amount: refunded, extra: stateOf() };
            default:
              return { amount: limit, extra: stateOf() };
          }
        },
      };
    },
  };

  /** An accepted payment: as sent, with the `extra` of its verify, and the refusal if its transaction would revert. */
  type Judged = Partial<Pick<ModelledPayment, "extra" | "revert">> & { payment?: SignedPayment };

  async function judge(
    source: ChannelSource,
    payment: SignedPayment,
    { price, revert, state, walletToCome, ...facts }: ModelFacts,
  ): Promise<Invalid | Judged> {
    switch (payment.method) {
      case channelMethods.voucher:
        return judgeVoucher(source, payment, price);
      case channelMethods.claim: {
        const planned = await planClaim(source, payment);
        return "reason" in planned ? planned : { payment: planned };
      }
      case channelMethods.settle: {
        const planned = planPayout(payment);
        if ("reason" in planned) return planned;
        return { payment: planned, revert: revert === undefined ? revert : payoutReverts(revert) };
      }
      case channelMethods.refund: {
        const planned = await planRefund(source, payment);
        if ("reason" in planned) return planned;
        const { config, refundNonce: nonce, ...refund } = refundOf(planned);
        const { chainId } = source.network;
        const why =
          (refund.claims.length > 0
            ? escrowOf(chainId).explainClaim(refund.claims, refund.claimSignature)
            : undefined) ?? escrowOf(chainId).explainRefund(config, { ...refund, nonce });
        return { payment: planned, revert: why === undefined ? undefined : refundReverts(why) };
      }
      default: {
        const asked: ChannelSource =
          walletToCome === undefined
            ? source
            : { ...source, askWallet: async (...given) => walletToCome(...given) };
        const judged = await judgeDeposit(asked, payment, price, () => ({ ...facts, isDone: false }));
        if ("reason" in judged) return judged;
        const why = explainDeposit(payment) ?? revert;
        return { extra: judged.extra, revert: why === undefined ? why : (state ?? depositReverts(why)) };
      }
    }
  }
}

/** The contract's own error for a deposit whose terms were checked; undefined if it has none. */
function explainDeposit({ payer, payTo, limit }: SignedPayment): string | undefined {
  if ([payer, payTo].some((account) => sameAddress(account, zeroAddress))) return "InvalidChannel";
  return limit === 0n ? "ZeroDeposit" : undefined;
}
