import { ForbiddenError } from "../errors.ts";
import { belowMinimum } from "../organizations/limits.ts";
import type { Caller, Scope } from "../organizations/organizations.ts";
import { checkTerms } from "../protocol/checks.ts";
import type { Address } from "../protocol/hex.ts";
import { formatNetwork, type NetworkName } from "../protocol/networks.ts";
import { problemDetails } from "../protocol/problems.ts";
import type { Invalid } from "../protocol/reasons.ts";
import { refusals } from "../protocol/refusals.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import type { FacilitatorContext, Lane, Lanes } from "./context.ts";
import { createPaymentReader, type SettleablePayment } from "./payment.ts";
import type { Checked } from "./publish-checks.ts";

/** A payment that is good on its face, with the chain that decides the rest. */
export type ReadPayment = { payment: SettleablePayment } & Lane;

/** Reads the payment of a request for the configured networks, and judges all that needs no chain and no caller. */
export type PaymentIntake = (request: PaymentRequest, checked: Checked) => ReadPayment | Invalid;

/** Makes the first step that verify and settle share. */
export function createPaymentIntake(networks: FacilitatorContext["networks"]): PaymentIntake {
  const readers = new Map(
    [...networks].map(([name, [{ chain }]]) => [name, createPaymentReader(chain.network)]),
  );
  return (request, checked) => {
    const { name } = request.knownNetwork;
    const lanes = networks.get(name);
    const read = readers.get(name);
    if (lanes === undefined || read === undefined) {
      const enabled = [...networks.values()].map(([{ chain }]) =>
        formatNetwork(chain.network, request.x402Version),
      );
      return checked("networkIsEnabled", refusals.networkNotEnabled(request.network, enabled));
    }
    checked("networkIsEnabled", undefined);
    const lane = leastLoaded(lanes);
    const refusal = checkTerms(request, lane.chain.network, checked);
    if (refusal !== undefined) return refusal;
    const payment = read(request);
    if (payment === undefined) throw new Error("an allowed asset has no domain");
    return { payment, ...lane };
  };
}

/** Of the operators that can send, or else of all, the one whose payments wait least. */
function leastLoaded(lanes: Lanes): Lane {
  const weigh = ({ relayer }: Lane) => {
    const { transactions, queued } = relayer.load();
    return transactions + queued;
  };
  const able = lanes.filter((lane) => lane.canSend());
  const [first = lanes[0], ...others] = able.length === 0 ? lanes : able;
  return others.reduce((least, lane) => (weigh(lane) < weigh(least) ? lane : least), first);
}

/** @throws ForbiddenError when the caller's key lacks the scope. */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope)) throw new ForbiddenError(problemDetails.lacksScope(scope));
}

/** Where an organization is paid on a network; undefined when it has not said. */
export function recipientFor(caller: Caller | null, network: NetworkName): Address | undefined {
  return caller?.organization.recipients[network];
}

/** What the caller's organization keeps from being settled, although the payment is good. */
export function checkLimits(
  caller: Caller | null,
  { network, authorization }: SettleablePayment,
): Invalid | undefined {
  return belowMinimum(caller?.organization.limits[network.name], authorization.value);
}
