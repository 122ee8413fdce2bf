import { readPart } from "../../protocol/wire-values.ts";
import type { MethodExtra, PayableMethod, TakenMethod } from "../method.ts";
import { permit2Address } from "../permit2-domain.ts";
import { type scheme as channelScheme, deposit, permit2Deposit } from "./batch-settlement-methods.ts";
import { withdrawDelays } from "./channel.ts";
import { writeDeposit } from "./payloads.ts";
import { configFor, depositFor, randomSalt, signDeposit } from "./sign-channel.ts";

/* Deposits as payers sign them, with a new channel for each payment. `channel-buyer.ts` reuses channels. */

/** Creates the payers' part of a deposit method, in which a deposit pays for one purchase. */
function payable<Transfer extends "eip3009" | "permit2">(
  method: TakenMethod<typeof channelScheme, Transfer>,
  { extra: more, ...own }: Pick<PayableMethod, "offerNeeds" | "spender"> & { extra: MethodExtra },
): PayableMethod<typeof channelScheme, Transfer> {
  const { name, scheme, transfer, versions, takesLess } = method;
  return {
    name,
    scheme,
    transfer,
    versions,
    takesLess,
    ...own,
    paysPlain: true,
    extra(network) {
      const offered = deposit.extra(network);
      return offered && { ...offered, withdrawDelay: withdrawDelays.least, ...more };
    },
    async sign(signer, { asset, chainId, to: payTo, value, extra, from, nonce, ...times }) {
      const salt = nonce ?? randomSalt();
      const payer = from === undefined ? signer : { address: from };
      const config = configFor(payer, { asset, payTo, extra }, salt);
      const amount = depositFor(value, extra, value);
      const terms = { ...times, asset, transfer, amount, salt };
      const payload = await signDeposit(signer, { config, chainId, max: value }, terms);
      return method.read(readPart(payload, "payload", refuse), asset.address, undefined);
    },
    write: writeDeposit,
  };
}

function refuse(at: string, problem: string): never {
  throw new Error(`a deposit that was signed here is malformed: ${at} ${problem}`);
}

/** The deposit methods, the default one first. */
export const payableDeposits = [
  payable(deposit, { offerNeeds: ["name", "version", "receiverAuthorizer"], extra: {} }),
  payable(permit2Deposit, {
    offerNeeds: ["receiverAuthorizer"],
    spender: permit2Address,
    extra: { assetTransferMethod: "permit2" },
  }),
] as const;
