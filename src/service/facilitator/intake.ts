import type { Chain } from "../../chain/chain.ts";
import { normaliseSignature, recoverSigner, rememberSigners } from "../../chain/signing/recover-signer.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { refuseSignature } from "../../methods/refuse-signature.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { type CheckName, checkOwnPayTo, checkTerms, payeeOf } from "../../protocol/checks.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { type Asset, findAsset, formatNetwork } from "../../protocol/networks.ts";
import { type Operation, problemDetails } from "../../protocol/problems.ts";
import { refusals } from "../../protocol/refusals.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { PaymentWords } from "../../protocol/signed-payment.ts";
import { type SignedPayment, tokenSignature } from "../../protocol/signed-payment.ts";
import { ForbiddenError, OperatorError } from "../../util/errors.ts";
import { belowMinimum, type Caller, type Organization, type Scope } from "../organizations/organizations.ts";
import type { Checked, FacilitatorContext, Lane, Lanes } from "./context.ts";

/** A payment that is good on its face, with the chain that decides the rest. */
export type ReadPayment = {
  payment: SettleablePayment;
  /** The operators of its network: the one that should settle it, and those that may where that one cannot. */
  lanes: Lanes;
};

/** Reads the payment of a request for the configured networks, and judges all that needs no chain and no caller. */
export type PaymentIntake = (
  request: PaymentRequest,
  operation: Operation,
  checked: Checked,
) => ReadPayment | Invalid;

/** Makes the first step that verify and settle share. */
export function createPaymentIntake(
  networks: FacilitatorContext["networks"],
  ways: FacilitatorContext["ways"],
): PaymentIntake {
  const readers = new Map(
    [...networks].map(([name, [{ chain }]]) => [name, createPaymentReader(chain.network, ways)]),
  );
  const inOrder = createOrder();
  return (request, operation, checked) => {
    const { name } = request.knownNetwork;
    const lanes = networks.get(name);
    const read = readers.get(name);
    if (lanes === undefined || read === undefined) {
      const enabled = [...networks.values()].map(([{ chain }]) =>
        formatNetwork(chain.network, request.x402Version),
      );
      return checked("networkIsEnabled", refusals.networkNotEnabled(request.network, enabled));
    }
    let last: CheckName = "networkIsEnabled";
    const checking = { method: ways.methodOf(request.payment.method), operation };
    const refusal = checkTerms(request, lanes[0].chain.network, checking, (check) => {
      last = check;
    });
    checked(last, refusal);
    if (refusal !== undefined) return refusal;
    const payment = read(request, operation);
    if (payment === undefined) throw new Error("an allowed asset is not configured");
    return { payment, lanes: inOrder(lanes) };
  };
}

/**
 * Operators that can settle before those that cannot, and among them the one whose payments wait least first. Where
 * equally many wait, they take turns: payments of one burst are all looked at before the first of them is queued.
 */
function createOrder(): (lanes: Lanes) => Lanes {
  /** When a lane was last the first, as a count of all choices. */
  const turns = new WeakMap<Lane, number>();
  let choices = 0;
  const weigh = ({ relayer, canSend }: Lane) => {
    const { transactions, queued } = relayer.load();
    const isAble = canSend() && !relayer.health.isAvoided();
    return transactions + queued + (isAble ? 0 : Number.MAX_SAFE_INTEGER / 2);
  };
  return (lanes) => {
    const [first, ...others] = lanes;
    if (others.length === 0) return lanes;
    const weighed = lanes
      .map((lane) => ({ lane, weight: weigh(lane), turn: turns.get(lane) ?? 0 }))
      .sort((a, b) => a.weight - b.weight || a.turn - b.turn);
    const [best = first, ...rest] = weighed.map(({ lane }) => lane);
    turns.set(best, ++choices);
    return [best, ...rest];
  };
}

/**
 * Does work with the first operator that can do it.
 *
 * @throws OperatorError when none can.
 */
export async function withOperator<T>(lanes: Lanes, work: (lane: Lane) => Promise<T>): Promise<T> {
  const [lane, next, ...others] = lanes;
  try {
    return await work(lane);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    lane.relayer.health.failed(error);
    if (next === undefined) throw error;
    return withOperator([next, ...others], work);
  }
}

/** @throws ForbiddenError when the caller's key lacks the scope. */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope)) throw new ForbiddenError(problemDetails.lacksScope(scope));
}

/**
 * To whom a payment goes: where it was signed to, or the recipient that the caller's organization has set for its network;
 * undefined where it has set none.
 */
export function payeeFor(caller: Caller | null, { network, signed }: SettleablePayment): Address | undefined {
  return payeeOf(signed, network, caller?.organization.recipients[network.name]);
}

/** What the caller's organization keeps from being settled, although the payment is good. */
export function checkForCaller(
  caller: Caller | null,
  { network, signed }: SettleablePayment,
  checked: Checked,
): Invalid | undefined {
  const { recipients = {}, limits = {} }: Partial<Organization> = caller?.organization ?? {};
  const { name, payTo } = network;
  const foreign = checkOwnPayTo(signed, network, recipients[name]);
  if (payTo === "recipients" && checked("payToIsOwn", foreign) !== undefined) return foreign;
  return checked("minimumIsReached", belowMinimum(limits[name], signed.limit));
}

/** The signature as the token takes it, or that of a wallet with its deployment. */
export type ProvenSignature = { signature: Hex };

/**
 * Whether the payer signed the payment: by plain ECDSA, without a request, or else by asking the contract at the
 * payer's address (ERC-1271), which costs one request.
 *
 * A delegated account (EIP-7702) whose plain signature recovers passes here, since its key did sign; whether the
 * delegate agrees, which is what the token asks, shows in the simulation.
 */
export async function verifySignature(
  payment: SettleablePayment,
  chain: Chain,
  ways: Pick<WaysToPay, "methodOf">,
): Promise<ProvenSignature | Invalid> {
  const { signed, digest } = payment;
  const { payer, signature } = signed;
  if (hasSigned(payment)) {
    const isAsItCame = chain.network.strictness === "reference";
    return { signature: isAsItCame ? signature : normaliseSignature(signature) };
  }

  const inner = tokenSignature(signature);
  const proof = await chain.askWallet(payer, digest, inner, payment.id);
  const { asset, network } = payment;
  const place = { asset, network, recover: recoverSigner };
  const refusal = await refuseSignature(ways.methodOf(signed.method), signed, proof, place);
  return refusal ?? { signature: proof === "accepted" ? inner : signature };
}

/** A payment is verified and then settled, as a rule: to recover its signer takes a third of the CPU of a verify. */
const recoverOnce = rememberSigners(recoverSigner, 4_096);

/** Whether the payer signed the payment, by plain ECDSA. */
function hasSigned({ signed: { payer, signature }, digest }: SettleablePayment): boolean {
  const signer = recoverOnce(digest, signature);
  return signer !== undefined && sameAddress(signer, payer);
}

/** A request that passed the pure checks: a payment that one network, asset and contract could settle. */
export type SettleablePayment = {
  /** Also the id of its settlement. */
  id: Hex;
  network: NetworkConfig;
  asset: Asset;
  signed: SignedPayment;
  /** What messages about it call its members. */
  words: PaymentWords;
  requirements: PaymentRequest["requirements"];
  /** What the signature is over (EIP-712). */
  digest: Hex;
  /** What is to be settled: all that was signed, or of a maximum what the request asks for. */
  amount: bigint;
  /** Whether what was signed is a maximum. */
  takesLess: boolean;
};

/** Makes payments of one network's requests; what gives their digests is made once for each asset and way to pay. */
export function createPaymentReader(
  network: NetworkConfig,
  ways: Pick<WaysToPay, "methodOf">,
): (request: PaymentRequest, operation: Operation) => SettleablePayment | undefined {
  const digesters = new Map<string, (payment: SignedPayment) => Hex>();

  function digestOf(signed: SignedPayment, asset: Asset): Hex {
    const key = `${signed.method} ${asset.address}`;
    const digester = digesters.get(key) ?? ways.methodOf(signed.method).digester(asset, network.chainId);
    digesters.set(key, digester);
    return digester(signed);
  }

  return ({ settlementId: id, payment: signed, words, requirements }, operation) => {
    const asset = findAsset(network.assets, requirements.asset);
    if (asset === undefined) return undefined;
    const { takesLess } = ways.methodOf(signed.method);
    const amount = takesLess && operation === "settle" ? requirements.amount : signed.limit;
    return {
      id,
      network,
      asset,
      signed,
      words,
      requirements,
      digest: digestOf(signed, asset),
      amount,
      takesLess,
    };
  };
}
