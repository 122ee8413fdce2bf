import type { Chain } from "../../chain/chain.ts";
import { normaliseSignature, recoverSigner, rememberSigners } from "../../chain/signing/recover-signer.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import type { SettleCall } from "../../methods/on-chain/settling.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { refuseSignature } from "../../methods/refuse-signature.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { type Asset, findAsset } from "../../protocol/networks.ts";
import type { Operation } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { PaymentWords } from "../../protocol/signed-payment.ts";
import { type SignedPayment, tokenSignature } from "../../protocol/signed-payment.ts";

/** The signature in the form that the token takes, or the signature of a wallet along with its deployment. */
export type ProvenSignature = { signature: Hex };

/**
 * Checks if the payer signed the payment: by plain ECDSA, which costs no request, otherwise by asking the contract
 * at the payer's address (ERC-1271), which costs one.
 *
 * A delegated account (EIP-7702) passes if its plain signature recovers, since its key did sign. The token asks the
 * delegate instead; the simulation shows if that agrees.
 */
export async function verifySignature(
  payment: SettleablePayment,
  chain: Chain,
  ways: WaysToPay,
): Promise<ProvenSignature | Invalid> {
  const { signed, digest } = payment;
  const { payer, signature } = signed;
  if (hasSigned(payment)) {
    const isAsItCame = chain.network.strictness === "reference";
    return { signature: isAsItCame ? signature : normaliseSignature(signature) };
  }

  const method = ways.methodOf(signed.method);
  if (method.checksSignatures) return { signature };
  const inner = tokenSignature(signature);
  const proof = await chain.askWallet(payer, digest, inner, payment.id);
  const { asset, network } = payment;
  const place = { asset, network, recover: recoverSigner };
  const refusal = await refuseSignature(method, signed, proof, place);
  return refusal ?? { signature: proof === "accepted" ? inner : signature };
}

/** The builder codes appended to the calldata of a settlement: the payment's own, and the facilitator's. */
export function codesOf(
  { codes }: Pick<PaymentRequest, "codes">,
  { builderCode: wallet }: Pick<NetworkConfig, "builderCode">,
): SettleCall["codes"] {
  return codes === undefined && wallet === undefined ? undefined : { ...codes, wallet };
}

/** Most payments are verified and then settled, and recovering the signer takes a third of the CPU of a verify. */
const recoverOnce = rememberSigners(recoverSigner, 4_096);

/** Returns true if the payer signed the payment by plain ECDSA. */
export function hasSigned({ signed: { payer, signature }, digest }: SettleablePayment): boolean {
  const signer = recoverOnce(digest, signature);
  return signer !== undefined && sameAddress(signer, payer);
}

/** A request that passed the pure checks: one payment with its network and asset, ready to be settled. */
export type SettleablePayment = {
  /** Also the id of its settlement. */
  id: Hex;
  network: NetworkConfig;
  asset: Asset;
  signed: SignedPayment;
  /** The names of the payment's fields, for messages. */
  words: PaymentWords;
  requirements: PaymentRequest["requirements"];
  /** The EIP-712 digest that was signed. */
  digest: Hex;
  /** Identifies the payment together with the digest; null if the digest is enough. */
  payload: string | null;
  /** The amount to settle: all that was signed, or for a maximum the amount that the request asks for. */
  amount: bigint;
  /** True if what was signed is a maximum. */
  takesLess: boolean;
};

/** Returns true if a payment has the signature that was valid when it was claimed. */
export function isSignedAs({ signature }: SignedPayment, claimed: Hex): boolean {
  const same = (one: Hex) => normaliseSignature(tokenSignature(one)).toLowerCase();
  return same(signature) === same(claimed);
}

/** Makes the payment of a request. With its claim, this works even if the asset is no longer allowed. */
export type PaymentReader = (
  request: PaymentRequest,
  operation: Operation,
  claim?: Settlement,
) => SettleablePayment | undefined;

/** Makes payments from requests for one network. The digest functions are cached per asset and payment method. */
export function createPaymentReader(network: NetworkConfig, ways: WaysToPay): PaymentReader {
  const digesters = new Map<string, (payment: SignedPayment) => Hex>();

  function digestOf(signed: SignedPayment, asset: Asset): Hex {
    const key = `${signed.method} ${asset.address}`;
    const digester = digesters.get(key) ?? ways.methodOf(signed.method).digester(asset, network.chainId);
    digesters.set(key, digester);
    return digester(signed);
  }

  return ({ settlementId: id, payment: signed, words, requirements }, operation, claim) => {
    const allowed = findAsset(network.assets, requirements.asset);
    const asset = allowed ?? (claim && assetOf(claim, requirements.asset));
    if (asset === undefined) return undefined;
    const { takesLess, boundPayload } = ways.methodOf(signed.method);
    const payload = (signed.payload !== null && boundPayload?.(signed.payload)) || null;
    const amount = takesLess && operation === "settle" ? requirements.amount : signed.limit;
    // The domain of a removed token is unknown, but the claim holds the digest that was signed.
    const isTold = allowed === undefined && claim !== undefined && isMessageOf(signed, claim);
    const digest = isTold ? claim.digest : digestOf(signed, asset);
    return { id, network, asset, signed, words, requirements, digest, payload, amount, takesLess };
  };
}

/** A token that was paid with and is no longer allowed, as far as its claim tells. */
function assetOf({ asset }: Settlement, asked: Address): Asset | undefined {
  return sameAddress(asset, asked) ? { address: asset, name: "", version: "", decimals: 0 } : undefined;
}

/**
 * Returns true if a payment of the same id has the claim's complete message and signature, and the claim took all
 * that was signed.
 */
function isMessageOf(signed: SignedPayment, claim: Settlement): boolean {
  const { method, payTo, amount, maximum, window, payload, signature } = claim;
  return (
    signed.method === method &&
    (payTo === null || sameAddress(signed.payTo, payTo)) &&
    maximum === null &&
    signed.limit === amount &&
    signed.window.first === window.first &&
    signed.window.last === window.last &&
    signed.payload === payload &&
    isSignedAs(signed, signature)
  );
}
