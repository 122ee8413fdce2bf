import type { Chain } from "../../../chain/chain.ts";
import { recoverSigner } from "../../../chain/signing/recover-signer.ts";
import type { Hex } from "../../../protocol/hex.ts";
import type { WalletDeployment } from "../../../protocol/signed-payment.ts";
import type { VoucherClaim } from "../channel.ts";
import type { ChannelSource } from "../channel-source.ts";
import { contractCall, describeChannelRevert } from "./actions.ts";
import { encodeClaim, encodeClaimWithSignature } from "./channel-calls.ts";
import { confirmedBlock, readChannels, readReceiver } from "./channel-state.ts";

/** Gas limits that include signature checks by wallets. The first row uses 77,000, each further one 25,000. */
export const claimGas = 100_000n;
export const rowGas = 60_000n;

const gasOf = (rows: readonly VoucherClaim[]) => claimGas + rowGas * BigInt(rows.length);

/** The call that claims rows with a signature by their common authorizer. */
export function claimCall(rows: readonly VoucherClaim[], signature: Hex) {
  return contractCall(encodeClaimWithSignature(rows, signature), gasOf(rows));
}

/**
 * Reads channels from a chain. Throws UndeterminedError if the chain does not answer.
 *
 * @param about the settlement's id, so that observers can attribute requests to it
 * @param deployment the deployment of the payer's wallet, if it is deployed with the payment
 */
export function sourceOf(chain: Chain, about?: Hex, deployment?: WalletDeployment): ChannelSource {
  const { network, reader } = chain;
  return {
    network,
    recover: recoverSigner,
    askWallet: (account, digest, signature) => chain.askWallet(account, digest, signature, about, deployment),
    head: () => chain.head(),
    readChannels: async (ids, at) =>
      readChannels({ reader, about, block: at && (await confirmedBlock(chain)) }, ids),
    readReceiver: (receiver, token, block) => readReceiver({ reader, about, block }, receiver, token),
    async explainClaim(rows, signature) {
      const [first] = rows;
      if (first === undefined) return undefined;
      const revert =
        signature === undefined
          ? await chain.simulateFrom(
              first.channel.receiverAuthorizer,
              contractCall(encodeClaim(rows), gasOf(rows)),
              about,
            )
          : await chain.simulateFrom(chain.operator, claimCall(rows, signature), about);
      return revert && describeChannelRevert(revert);
    },
  };
}
