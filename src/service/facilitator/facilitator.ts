import type { SettlementFilter } from "../../ledger/ledger.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import { kindsOf } from "../../methods/kinds-of.ts";
import type { Supported } from "../../protocol/answers.ts";
import { builderCodeExtension } from "../../protocol/builder-code.ts";
import type { ServedNetwork } from "../../protocol/checks.ts";
import type { Hex } from "../../protocol/hex.ts";
import { createOpenMaxima } from "../../protocol/open-maxima.ts";
import { paymentIdentifierExtension } from "../../protocol/payment-identifier.ts";
import { referenceReason } from "../../protocol/reference-reasons.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { Cursor } from "../../protocol/settlement-query.ts";
import { type Warning, warningsOf } from "../../protocol/strictness.ts";
import type { NameReason } from "../../protocol/write-answers.ts";
import { withEitherSignal } from "../../util/waiting.ts";
import type { Caller } from "../organizations/organizations.ts";
import { identifyRequest } from "./channel-owners.ts";
import type { FacilitatorContext } from "./context.ts";
import { type IdempotencyKey, settleIdempotently } from "./idempotent.ts";
import { createSettle } from "./settle.ts";
import type { SettleResult } from "./settle-result.ts";
import { createVerify, type Verify } from "./verify.ts";

/** The service without HTTP. */
export type Facilitator = {
  verify: Verify;
  /** Returns true if settle identifies the request itself, because it can be repeated: see `Settling.identify`. */
  isNamedBySettle(request: PaymentRequest): boolean;
  /**
   * Settles a payment; see `Settle`. With an idempotency key, a repeat of the same body gets the same success for
   * 24 h; with `repeats`, the identifier inside the payment replaces the key.
   *
   * @param onNamed called with the request as it will be settled, before anything else happens
   */
  settle(
    request: PaymentRequest,
    caller: Caller,
    signal: AbortSignal,
    onNamed: (request: PaymentRequest) => void,
    options?: { idempotency?: IdempotencyKey | undefined; repeats?: boolean },
  ): Promise<SettleResult>;
  /** The network of a payment as configured; undefined if it is not served. */
  networkOf(request: PaymentRequest): ServedNetwork | undefined;
  /** Renames the reasons in answers if they are not those of the specification. */
  readonly nameReason: NameReason | undefined;
  /** The warnings in the answer to a valid payment. */
  warningsOf(request: PaymentRequest): readonly Warning[];
  /** Returns a settlement of the caller's organization; null if there is none or it belongs to another. */
  findSettlement(id: Hex, caller: Caller): Promise<Settlement | null>;
  /** Settlements of the caller's organization, newest first; see `Claims.list`. */
  listSettlements(
    filter: Omit<SettlementFilter, "organizationId">,
    page: { limit: number; after?: Cursor | undefined },
    caller: Caller,
  ): Promise<{ settlements: readonly Settlement[]; next: Cursor | null }>;
  /** The operators, and the kinds of payment for every configured network, even if it is unhealthy. */
  supported(): Supported;
};

export function createFacilitator(context: FacilitatorContext): Facilitator {
  const { networks, ledger, ways, now, settleWaitMs, closing } = context;
  const maxima = createOpenMaxima();
  const settle = createSettle(context, maxima);
  const withEither = withEitherSignal(closing);
  const networkOf = ({ knownNetwork }: PaymentRequest) => networks.get(knownNetwork.name)?.[0].chain.network;
  return {
    verify: createVerify(context, maxima),

    isNamedBySettle: ({ payment }) => ways.settlingOf(payment.method).identify !== undefined,

    async settle(given, caller, callerSignal, onNamed, { idempotency, repeats = false } = {}) {
      const { identify } = ways.settlingOf(given.payment.method);
      const request = identify ? await identifyRequest(identify, given, caller, context) : given;
      onNamed(request);
      return withEither(callerSignal, (signal) => {
        if (idempotency === undefined) return settle(request, caller, signal, { repeats });
        const { id } = caller.organization;
        const waiting = { now, signal, deadline: now() + settleWaitMs[request.x402Version] };
        return settleIdempotently(ledger, id, idempotency, request.settlementId, waiting, () =>
          settle(request, caller, signal),
        );
      });
    },

    networkOf,
    // The setting is the same for all networks.
    nameReason: [...networks.values()].some(([{ chain }]) => chain.network.reasons === "reference")
      ? referenceReason
      : undefined,

    warningsOf(request) {
      const network = networkOf(request);
      if (network === undefined) return [];
      const method = ways.methodOf(request.payment.method);
      return warningsOf(request, network, { now: BigInt(Math.floor(now() / 1_000)), method });
    },

    async findSettlement(id, caller) {
      const settlement = await ledger.claims.find(id);
      return settlement?.organizationId === caller.organization.id ? settlement : null;
    },

    listSettlements: (filter, page, caller) =>
      ledger.claims.list({ ...filter, organizationId: caller.organization.id }, page),

    supported() {
      const all = [...networks.values()];
      const operators = all.flatMap((lanes) => lanes.map(({ relayer }) => relayer.operator));
      const versions = [1, 2] as const;
      const sponsored = new Set(all.flatMap(([lane]) => lane.chain.network.gasSponsoring ?? []));
      return {
        kinds: versions.flatMap((x402Version) =>
          all.flatMap(([lane]) => kindsOf(ways.methods, lane.chain.network, x402Version)),
        ),
        extensions: [paymentIdentifierExtension, builderCodeExtension, ...sponsored],
        signers: { "eip155:*": [...new Set(operators)] },
      };
    },
  };
}
