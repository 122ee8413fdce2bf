import type { Chain } from "../../chain/chain.ts";
import { normaliseSignature, recoverSigner, rememberSigners } from "../../chain/signing/recover-signer.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Claims } from "../../ledger/ledger.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { refuseSignature } from "../../methods/refuse-signature.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import {
  type CheckName,
  checkClaimed,
  checkOwnPayTo,
  checkTerms,
  forPayment,
  payeeOf,
  withContract,
} from "../../protocol/checks.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { type Asset, findAsset, formatNetwork, type NetworkName } from "../../protocol/networks.ts";
import { type Operation, problemDetails } from "../../protocol/problems.ts";
import { refusals } from "../../protocol/refusals.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { PaymentWords } from "../../protocol/signed-payment.ts";
import { fingerprintOf, type SignedPayment, tokenSignature } from "../../protocol/signed-payment.ts";
import { refuseAsReference } from "../../protocol/strictness.ts";
import { ForbiddenError, OperatorError, UndeterminedError } from "../../util/errors.ts";
import { belowMinimum, type Caller, type Organization, type Scope } from "../organizations/organizations.ts";
import { chainOf } from "../relayer/slot.ts";
import type { Checked, FacilitatorContext, Lane, Lanes } from "./context.ts";

/** A payment that is good on its face and that its payer has signed, with the chain that decides the rest. */
export type ReadPayment = ProvenSignature & {
  payment: SettleablePayment;
  /**
   * The operators of its network: the one that should settle it, and those that may where that one cannot. Undefined for a claimed
   * payment whose network is not served now.
   */
  lanes: Lanes | undefined;
  /** To whom it goes; undefined where a verify cannot know that. */
  recipient: Address | undefined;
};

/**
 * Reads the payment of a request for the configured networks, and judges all that comes before the ledger is asked about a
 * new payment. One that is claimed already is judged by what it was claimed with: the settings may have changed since.
 *
 * @throws ForbiddenError where the caller's key lacks the scope, or its organization a recipient for a new payment
 */
export type PaymentIntake = (
  request: PaymentRequest,
  operation: Operation,
  caller: Caller | null,
  checked: Checked,
) => Promise<ReadPayment | Invalid>;

/** What stands against a new payment: notes its check and gives the refusal, or throws. */
type Obstacle = () => Invalid;

/** Makes the first step that verify and settle share. */
export function createPaymentIntake({
  networks,
  ways,
  ledger,
}: Pick<FacilitatorContext, "networks" | "ways"> & {
  ledger: { claims: Pick<Claims, "find"> };
}): PaymentIntake {
  const readers = new Map(
    [...networks].map(([name, [{ chain }]]) => [name, createPaymentReader(chain.network, ways)]),
  );
  const inOrder = createOrder();

  return async (request, operation, caller, checked) => {
    const { name } = request.knownNetwork;
    const lanes = networks.get(name);
    const read = readers.get(name);
    const checking = { method: ways.methodOf(request.payment.method), operation };
    if (lanes === undefined || read === undefined) {
      const unserved = withoutChain(request);
      const claimed = await findClaimed(createPaymentReader(unserved, ways), unserved);
      if (claimed !== undefined) return claimed;
      const enabled = [...networks.values()].map(([{ chain }]) =>
        formatNetwork(chain.network, request.x402Version),
      );
      return checked("networkIsEnabled", refusals.networkNotEnabled(request.network, enabled));
    }
    const [{ chain }] = lanes;
    let isForged = false;
    const judged = await judge(read, lanes);
    if (typeof judged !== "function") return judged;
    return (await findClaimed(read, chain.network, lanes)) ?? judged();

    async function judge(read: PaymentReader, lanes: Lanes): Promise<ReadPayment | Obstacle> {
      let last: CheckName = "networkIsEnabled";
      const network = forPayment(chain.network, request.payment, checking.method);
      const refusal = checkTerms(request, network, checking, (check) => {
        last = check;
      });
      if (refusal !== undefined) return () => checked(last, refusal);
      checked(last, undefined);
      const unlike = refuseAsReference(request, network);
      if (unlike !== undefined) return () => checked("formIsOfReference", unlike);
      const allowed = read(request, operation);
      if (allowed === undefined) throw new Error("an allowed asset is not configured");
      const payment = { ...allowed, network };
      if (caller !== null) requireScope(caller, operation);
      const recipient = payeeFor(caller, payment);
      if (recipient === undefined && operation === "settle") {
        return () => {
          throw new ForbiddenError(problemDetails.lacksRecipient(name));
        };
      }
      const refused = checkForCaller(caller, payment, checked);
      if (refused !== undefined) return refused;
      const proven = await verifySignature(payment, chain, ways);
      if ("reason" in proven) {
        isForged = true;
        return () => checked("signatureHolds", proven);
      }
      checked("signatureHolds", undefined);
      return { payment, lanes: through(network, inOrder(lanes)), recipient, ...proven };
    }

    /** The payment as it was claimed; what is wrong with the request for it; undefined where it was not claimed. */
    async function findClaimed(
      read: PaymentReader,
      offered: NetworkConfig,
      lanes?: Lanes,
    ): Promise<ReadPayment | Invalid | undefined> {
      const settlement = await ledger.claims.find(request.settlementId);
      const known = settlement === null ? undefined : read(request, operation, settlement);
      if (settlement === null || known === undefined) return undefined;
      const { signature, recipient, contract } = settlement;
      const network = contract === null ? offered : withContract(offered, contract);
      const payment = { ...known, network };
      if (!isClaimedAs(settlement, payment)) return undefined;
      if (!hasSigned(payment) && !isSignedAs(request.payment, signature)) {
        if (isForged) return undefined;
        if (lanes === undefined) throw notServed(name);
        // A wallet may sign one message in several ways, and only its code can tell.
        if ("reason" in (await verifySignature(payment, lanes[0].chain, ways))) return undefined;
      }
      if (caller !== null) requireScope(caller, operation);
      let last: CheckName = "networkIsEnabled";
      const refusal = checkClaimed(request, network, checking, (check) => {
        last = check;
      });
      if (refusal !== undefined) return checked(last, refusal);
      checked("signatureHolds", undefined);
      return { payment, lanes: lanes && through(network, lanes), recipient, signature };
    }
  };
}

/** A network that is not served, as far as a payment tells that was claimed on it: nothing is sent there, and nothing asked. */
function withoutChain({ knownNetwork, payment }: PaymentRequest): NetworkConfig {
  return {
    ...knownNetwork,
    facilitatorContract: payment.payTo,
    assets: [knownNetwork.usdc],
    rpcUrls: [""],
    confirmations: 1,
    maxFeePerGas: 0n,
  };
}

/** The error for a question that only the chain of a network could answer that is not served. */
export function notServed(name: NetworkName): UndeterminedError {
  return new UndeterminedError(
    `${name} is not served at the moment, and the payment was sent before; send the same payment again`,
  );
}

/** The operators of a network, with the facilitator contract that a payment is for. */
function through({ facilitatorContract: contract }: NetworkConfig, [first, ...others]: Lanes): Lanes {
  if (sameAddress(contract, first.chain.network.facilitatorContract)) return [first, ...others];
  const toContract = (lane: Lane): Lane => ({ ...lane, chain: chainOf(lane.chain, { contract }) });
  return [toContract(first), ...others.map(toContract)];
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
function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope)) throw new ForbiddenError(problemDetails.lacksScope(scope));
}

/**
 * To whom a payment goes: where it was signed to, or the recipient that the caller's organization has set for its network;
 * undefined where it has set none.
 */
function payeeFor(caller: Caller | null, { network, signed }: SettleablePayment): Address | undefined {
  return payeeOf(signed, network, caller?.organization.recipients[network.name]);
}

/** What the caller's organization keeps from being settled, although the payment is good. */
function checkForCaller(
  caller: Caller | null,
  { network, signed }: SettleablePayment,
  checked: Checked,
): Obstacle | undefined {
  const { recipients = {}, limits = {} }: Partial<Organization> = caller?.organization ?? {};
  const { name, payTo } = network;
  const foreign = checkOwnPayTo(signed, network, recipients[name]);
  if (foreign !== undefined) return () => checked("payToIsOwn", foreign);
  if (payTo === "recipients") checked("payToIsOwn", undefined);
  const low = belowMinimum(limits[name], signed.limit);
  if (low !== undefined) return () => checked("minimumIsReached", low);
  checked("minimumIsReached", undefined);
  return undefined;
}

/** The signature as the token takes it, or that of a wallet with its deployment. */
export type ProvenSignature = { signature: Hex };

/**
 * Checks whether the payer signed the payment: by plain ECDSA, without a request, or else by asking the contract at the
 * payer's address (ERC-1271), which costs one request.
 *
 * A delegated account (EIP-7702) whose plain signature recovers passes here, since its key did sign; whether the
 * delegate agrees, which is what the token asks, shows in the simulation.
 */
async function verifySignature(
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

/** Returns true if the payer signed the payment, by plain ECDSA. */
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
  /** True if what was signed is a maximum. */
  takesLess: boolean;
};

/** Returns true if a settlement is of this very payment, however much of it was taken. */
export function isClaimedAs(settlement: Settlement, { digest, signed }: SettleablePayment): boolean {
  return settlement.digest === fingerprintOf(digest, settlement.amount, signed.limit);
}

/** Returns true if a payment has the signature that held when it was claimed. */
function isSignedAs({ signature }: SignedPayment, claimed: Hex): boolean {
  const same = (one: Hex) => normaliseSignature(tokenSignature(one)).toLowerCase();
  return same(signature) === same(claimed);
}

/** Makes the payment of a request; with its claim also where the asset is not allowed any more. */
type PaymentReader = (
  request: PaymentRequest,
  operation: Operation,
  claim?: Settlement,
) => SettleablePayment | undefined;

/** Makes payments of one network's requests; what gives their digests is made once for each asset and way to pay. */
function createPaymentReader(network: NetworkConfig, ways: Pick<WaysToPay, "methodOf">): PaymentReader {
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
    const { takesLess } = ways.methodOf(signed.method);
    const amount = takesLess && operation === "settle" ? requirements.amount : signed.limit;
    // The domain of a token that was removed is not known, and what was signed over it is in the claim.
    const isTold = allowed === undefined && claim !== undefined && isMessageOf(signed, claim);
    const digest = isTold ? claim.digest : digestOf(signed, asset);
    return { id, network, asset, signed, words, requirements, digest, amount, takesLess };
  };
}

/** A token that was paid with and is not allowed any more, as far as its claim says. */
function assetOf({ asset }: Settlement, asked: Address): Asset | undefined {
  return sameAddress(asset, asked) ? { address: asset, name: "", version: "", decimals: 0 } : undefined;
}

/** Returns true if all of a claim's message and its signature are in a payment of the same id, and the claim took all that it allows. */
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
