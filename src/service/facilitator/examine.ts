import type { NetworkConfig } from "../../config/serve-config.ts";
import type { BoundIdentifier } from "../../ledger/settlement.ts";
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
import type { Address } from "../../protocol/hex.ts";
import { formatNetwork } from "../../protocol/networks.ts";
import { type Operation, problemDetails } from "../../protocol/problems.ts";
import { refusals } from "../../protocol/refusals.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { isClaimedAs } from "../../protocol/settlement-rules.ts";
import { refuseAsReference } from "../../protocol/strictness.ts";
import { ForbiddenError } from "../../util/errors.ts";
import { belowMinimum, type Caller, type Organization } from "../organizations/organizations.ts";
import { hasOpened } from "./channel-owners.ts";
import type { FacilitatorContext, Lanes } from "./context.ts";
import { bindingOf, isBound } from "./idempotent.ts";
import { createOrder, notServed, through } from "./lanes.ts";
import {
  createPaymentReader,
  hasSigned,
  isSignedAs,
  type PaymentReader,
  type ProvenSignature,
  type SettleablePayment,
  verifySignature,
} from "./payment.ts";
import { startTrail, type Trail } from "./trail.ts";

/** A well-formed payment that its payer has signed, and what is needed to settle it; verify and settle start from this. */
export type Examined = ProvenSignature & {
  request: PaymentRequest;
  /** Null if verify is open to callers without a key. */
  caller: Caller | null;
  payment: SettleablePayment;
  /**
   * The operators of its network: first the one that should settle it, then the fallbacks. Undefined for a claimed
   * payment whose network is no longer served.
   */
  lanes: Lanes | undefined;
  /** The address that is paid; undefined if a verify cannot know it. */
  recipient: Address | undefined;
  /**
   * The payer's identifier for the payment. `isIdentified` is true if the caller's organization has claimed the
   * payment under it.
   */
  identifier: BoundIdentifier | undefined;
  isIdentified: boolean;
  trail: Trail;
};

/**
 * Examines the payment of a request for the configured networks: all checks that verify and settle share before they ask the
 * ledger about a new payment. A payment that is already claimed is judged by its claim: the settings may have changed since.
 *
 * @throws ForbiddenError if the caller's key lacks the scope, or its organization has no recipient for a new payment;
 * IdentifierReusedError if the organization has claimed another payment under the identifier
 */
export type Examine = (
  request: PaymentRequest,
  operation: Operation,
  caller: Caller | null,
) => Promise<Examined | Invalid>;

/** The parts of {@link Examined} that depend on the payment only. */
type Judged = Pick<Examined, "payment" | "lanes" | "recipient" | "signature">;

/** An objection to a new payment, which an existing claim overrules: returns the refusal, or throws. */
type Objection = () => Invalid;

export function createExamine({ networks, ways, ledger, serviceId }: FacilitatorContext): Examine {
  const readers = new Map(
    [...networks].map(([name, [{ chain }]]) => [name, createPaymentReader(chain.network, ways)]),
  );
  const inOrder = createOrder();

  return async (request, operation, caller) => {
    const trail = startTrail(request, serviceId);
    const judged = await judge(request, operation, caller, trail);
    if ("reason" in judged) return judged;
    trail.publish();
    const identifier = bindingOf(request, judged.payment);
    const isIdentified = caller !== null && (await isBound(ledger, caller.organization.id, identifier));
    return { ...judged, request, caller, identifier, isIdentified, trail };
  };

  async function judge(
    request: PaymentRequest,
    operation: Operation,
    caller: Caller | null,
    trail: Trail,
  ): Promise<Judged | Invalid> {
    const { name } = request.knownNetwork;
    const lanes = networks.get(name);
    const read = readers.get(name);
    const checking = { method: ways.methodOf(request.payment.method), operation };
    let isForged = false;
    /** The checks that passed. They are added to the trail once it is known if the settings or the claim decide. */
    let passed: CheckName[] = ["networkIsEnabled"];
    let refused: CheckName = "networkIsEnabled";
    const note = (check: CheckName, refusal: Invalid | undefined) => {
      if (refusal === undefined) passed.push(check);
      else refused = check;
    };
    if (lanes === undefined || read === undefined) {
      const unserved = withoutChain(request);
      const claimed = await judgeClaimed(createPaymentReader(unserved, ways), unserved);
      if (claimed !== undefined) return claimed;
      const enabled = [...networks.values()].map(([{ chain }]) =>
        formatNetwork(chain.network, request.x402Version),
      );
      return trail.refuse("networkIsEnabled", refusals.networkNotEnabled(request.network, enabled));
    }
    const [{ chain }] = lanes;
    const judged = await judgeNew(read, lanes, chain.network);
    if (typeof judged !== "function") return judged;
    return (await judgeClaimed(read, chain.network, lanes)) ?? (await judgeRelease(lanes)) ?? judged();

    async function judgeNew(
      read: PaymentReader,
      lanes: Lanes,
      served: NetworkConfig,
    ): Promise<Judged | Objection> {
      const object = (check: CheckName, refusal: Invalid) => () => {
        trail.pass(...passed);
        return trail.refuse(check, refusal);
      };
      const forbid = (problem: string) => () => {
        trail.pass(...passed);
        trail.publish();
        throw new ForbiddenError(problem);
      };
      const network = forPayment(served, request.payment, checking.method);
      const refusal = checkTerms(request, network, checking, note);
      if (refusal !== undefined) return object(refused, refusal);
      const unlike = refuseAsReference(request, network);
      if (unlike !== undefined) return object("formIsOfReference", unlike);
      const allowed = read(request, operation);
      if (allowed === undefined) throw new Error("an allowed asset is not configured");
      const payment = { ...allowed, network };
      if (caller !== null && !caller.scopes.includes(operation)) {
        return forbid(problemDetails.lacksScope(operation));
      }
      const { recipients = {}, limits = {} }: Partial<Organization> = caller?.organization ?? {};
      const recipient = payeeOf(payment.signed, network, recipients[name]);
      if (recipient === undefined && operation === "settle") {
        return forbid(problemDetails.lacksRecipient(name));
      }
      const foreign = checkOwnPayTo(payment.signed, network, recipients[name]);
      if (foreign !== undefined) return object("payToIsOwn", foreign);
      if (network.payTo === "recipients") passed.push("payToIsOwn");
      const { limit } = payment.signed;
      const isPriced = limit > 0n || checking.method.amounts !== "own";
      const low = isPriced ? belowMinimum(limits[name], limit) : undefined;
      if (low !== undefined) return object("minimumIsReached", low);
      passed.push("minimumIsReached");
      const proven = await verifySignature(payment, chain, ways);
      if ("reason" in proven) {
        isForged = true;
        return object("signatureHolds", proven);
      }
      passed.push("signatureHolds");
      trail.pass(...passed);
      return { payment, lanes: through(network, inOrder(lanes)), recipient, ...proven };
    }

    /**
     * Lets an organization take deposits out of channels that it opened, even if `ASSETS`, `PAY_TO` or its
     * recipient has changed since. Undefined for any other request.
     */
    async function judgeRelease(lanes: Lanes): Promise<Judged | undefined> {
      const [{ chain }] = lanes;
      const { network } = chain;
      const { payment, requirements } = request;
      const owned = ways.settlingOf(payment.method).channels?.ownedBy(payment, network);
      if (owned === undefined || !owned.releases || caller === null) return undefined;
      if (!(await hasOpened(ledger, owned, caller, network.chainId))) return undefined;
      const token = { address: requirements.asset, name: "", version: "", decimals: 0 };
      const former: NetworkConfig = { ...network, payTo: "any", assets: [...network.assets, token] };
      const passedBefore = passed;
      passed = ["networkIsEnabled"];
      const judged = await judgeNew(createPaymentReader(former, ways), lanes, former);
      if (typeof judged !== "function") return judged;
      passed = passedBefore;
      return undefined;
    }

    /** Returns the payment as it was claimed, or what is wrong with the request for it; undefined if it was not claimed. */
    async function judgeClaimed(
      read: PaymentReader,
      offered: NetworkConfig,
      lanes?: Lanes,
    ): Promise<Judged | Invalid | undefined> {
      const settlement = await ledger.claims.find(request.settlementId);
      const known = settlement === null ? undefined : read(request, operation, settlement);
      if (settlement === null || known === undefined) return undefined;
      const { signature, recipient, contract } = settlement;
      const network = contract === null ? offered : withContract(offered, contract);
      const payment = { ...known, network };
      if (!isClaimedAs(settlement, payment)) return undefined;
      if (!hasSigned(payment) && !isSignedAs(request.payment, signature)) {
        if (isForged) return undefined;
        if (lanes === undefined) notServed(name);
        // A wallet may accept several signatures of one message, and only its code can tell.
        if ("reason" in (await verifySignature(payment, lanes[0].chain, ways))) return undefined;
      }
      if (caller !== null && !caller.scopes.includes(operation)) {
        throw new ForbiddenError(problemDetails.lacksScope(operation));
      }
      passed = ["networkIsEnabled"];
      const refusal = checkClaimed(request, network, checking, note);
      trail.pass(...passed);
      if (refusal !== undefined) return trail.refuse(refused, refusal);
      trail.pass("signatureHolds");
      return { payment, lanes: lanes && through(network, lanes), recipient, signature };
    }
  }
}

/**
 * Stands in for the configuration of a network that is not served, for a payment that was claimed on it; never used
 * to send or read anything.
 */
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
