import { HTTPFacilitatorClient, x402ResourceServer } from "@x402/core/server";
import { toClientEvmSigner } from "@x402/evm";
import { BatchSettlementEvmScheme as BuyerScheme } from "@x402/evm/batch-settlement/client";
import { BatchSettlementEvmScheme as ShopScheme } from "@x402/evm/batch-settlement/server";
import { paymentMiddleware } from "@x402/express";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from "@x402/fetch";
import express from "express";
import { createPublicClient, http } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { mockBatchSettlementAbi } from "../../src/contracts/mockBatchSettlement.ts";
import type { HarnessChain } from "../../src/harness/setup/prepare-chain.ts";
import { claimBatchDigest } from "../../src/methods/batch-settlement/channel.ts";
import { batchSettlementAddress } from "../../src/methods/batch-settlement/contracts.ts";
import { shopRequest } from "../../src/methods/batch-settlement/shop-actions.ts";
import { localOrganization } from "../../src/payer/test-keys.ts";
import type { Hex } from "../../src/protocol/hex.ts";
import { listenOnLoopback } from "./loopback-server.ts";
import { goods } from "./merchant.ts";
import type { Body } from "./service.ts";

/* Shops and buyers for scheme "batch-settlement": the public packages, unmodified. */

export type TransferMethod = "eip3009" | "permit2";

type Exchange = { operation: string; body: unknown; answer: unknown };

/** A facilitator as the public packages call it, with a record of requests and answers. */
export function connectFacilitator(url: string, apiKey: string = localOrganization.apiKey) {
  const headers = { authorization: apiKey };
  const client = new HTTPFacilitatorClient({
    url,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
  });
  const exchanges: Exchange[] = [];
  const noting = (operation: "verify" | "settle") => async (payload: unknown, requirements: unknown) => {
    const call = client[operation].bind(client) as (...args: unknown[]) => Promise<unknown>;
    const answer = await call(payload, requirements).catch((error: unknown) => error);
    const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements };
    exchanges.push({ operation, body: JSON.parse(JSON.stringify(body)), answer });
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const facilitator = {
    verify: noting("verify"),
    settle: noting("settle"),
    getSupported: () => client.getSupported(),
  } as Pick<HTTPFacilitatorClient, "verify" | "settle" | "getSupported">;
  return { facilitator, exchanges };
}

/** A shop that sells for 1,000 units of the chain's token. */
export async function startChannelShop(
  chain: HarnessChain,
  facilitator: ReturnType<typeof connectFacilitator>["facilitator"],
  options: { method?: TransferMethod; ownKey?: boolean; receiver?: Hex; extensions?: Body } = {},
) {
  const { method = "eip3009", ownKey = false, extensions = {} } = options;
  const { receiver = privateKeyToAccount(generatePrivateKey()).address } = options;
  const { address: asset, name, version } = chain.asset;
  const { caip2: network } = chain.network;
  const receiverAuthorizerSigner = privateKeyToAccount(generatePrivateKey());
  const scheme = new ShopScheme(receiver, ownKey ? { receiverAuthorizerSigner } : {});
  const extra = { name, version, assetTransferMethod: method };
  const price = { asset, amount: "1000", extra };
  const accepts = { scheme: "batch-settlement", network, payTo: receiver, price } as const;
  const server = new x402ResourceServer(facilitator).register(network, scheme);
  const app = express();
  app.use(paymentMiddleware({ "GET /goods": { accepts, extensions } }, server));
  app.get("/goods", (_request, response) => void response.json(goods));
  const { origin, close } = await listenOnLoopback(app);
  const manager = scheme.createChannelManager(facilitator, network, asset);
  return { url: `${origin}/goods`, close, scheme, manager, receiver, authorizer: receiverAuthorizerSigner };
}

/** A buyer with 50,000 units of the token. With Permit2, all of them are approved. */
export async function createChannelBuyer(
  chain: HarnessChain,
  method: TransferMethod = "eip3009",
  key: Hex = generatePrivateKey(),
) {
  const account = privateKeyToAccount(key);
  await chain.fund(account.address, 50_000n);
  if (method === "permit2") await chain.approvePermit2(account.address, 50_000n);
  return { account, ...buyerOf(chain, account) };
}

type ClientSigner = Parameters<typeof toClientEvmSigner>[0];

/** A buyer that the public client signs for. */
export function buyerOf(
  chain: HarnessChain,
  signer: ClientSigner,
  options: ConstructorParameters<typeof BuyerScheme>[1] = {},
) {
  const client = createPublicClient({ transport: http(chain.rpcUrl) });
  const scheme = new BuyerScheme(toClientEvmSigner(signer, client), options);
  const { caip2 } = chain.network;
  const buyer = new x402Client().register(caip2, scheme);
  // Some networks have no default asset in the public package.
  buyer.setSpendControls({ allowedAssets: [{ network: caip2, asset: chain.asset.address }] });
  const pay = wrapFetchWithPayment(fetch, buyer);
  return {
    scheme,
    /** Buys once; returns the status, the body and the receipt. */
    async buy(url: string) {
      const response = await pay(url);
      const receipt = response.headers.get("PAYMENT-RESPONSE");
      return {
        status: response.status,
        body: (await response.json()) as unknown,
        receipt: receipt === null ? undefined : decodePaymentResponseHeader(receipt),
      };
    },
  };
}

/** The contract's state of a channel: the balance (deposits less refunds and withdrawals), and the total claimed. */
export function readChannelState({ rpcUrl }: HarnessChain, channelId: Hex) {
  return createPublicClient({ transport: http(rpcUrl) }).readContract({
    ...{ address: batchSettlementAddress, abi: mockBatchSettlementAbi },
    functionName: "channels",
    args: [channelId],
  });
}

/** A shop's requirements for one purchase. */
export function channelRequirements(
  { asset, network }: HarnessChain,
  options: { receiver: Hex; receiverAuthorizer: Hex; amount?: string; method?: TransferMethod },
) {
  const { receiver, receiverAuthorizer, amount = "1000", method = "eip3009" } = options;
  const { name, version } = asset;
  return {
    ...{ scheme: "batch-settlement", network: network.caip2, amount, asset: asset.address, payTo: receiver },
    maxTimeoutSeconds: 300,
    extra: {
      name,
      version,
      assetTransferMethod: method,
      receiverAuthorizer,
      withdrawDelay: 900,
      minDeposit: "10000",
    },
  } as const;
}

/**
 * Signs a deposit of 10,000 units, or a later voucher of the same buyer, with the public client.
 *
 * @param declared the extensions of the shop, with which a deposit may bring an approval of Permit2
 */
export async function signChannelPayment(
  buyer: ReturnType<typeof buyerOf>,
  paymentRequirements: ReturnType<typeof channelRequirements>,
  declared?: Body,
): Promise<Body> {
  const { payload, extensions } = await buyer.scheme.createPaymentPayload(2, paymentRequirements as never, {
    extensions: declared,
  });
  const paymentPayload = { x402Version: 2, accepted: paymentRequirements, payload, extensions };
  return { x402Version: 2, paymentPayload, paymentRequirements };
}

/** The body of a shop's request, with the skeleton of requirements that public shops send. */
export function channelAction({ asset, network }: HarnessChain, payTo: Hex, payload: object): Body {
  return shopRequest(network, { receiver: payTo, token: asset.address }, payload);
}

/** A row of a claim: how much of a deposit's voucher was charged. */
export function claimRow({ paymentPayload: { payload } }: Body, totalClaimed: string) {
  const { channelConfig: channel, voucher } = payload;
  const { maxClaimableAmount, signature } = voucher;
  return { voucher: { channel, maxClaimableAmount }, signature, totalClaimed };
}

/** A claim signed by its authorizer. */
export async function signClaim(
  chain: HarnessChain,
  claims: readonly ReturnType<typeof claimRow>[],
  authorizer: Pick<PrivateKeyAccount, "sign">,
): Promise<Body> {
  const rows = claims.map(({ voucher, totalClaimed, signature }) => ({
    channel: voucher.channel,
    signature,
    totalClaimed: BigInt(totalClaimed),
    maxClaimableAmount: BigInt(voucher.maxClaimableAmount),
  }));
  const claimAuthorizerSignature = await authorizer.sign({
    hash: claimBatchDigest(rows, chain.network.chainId),
  });
  const { receiver } = claims[0]?.voucher.channel ?? {};
  return channelAction(chain, receiver, { type: "claim", claims, claimAuthorizerSignature });
}

/** The requests of a shop that leaves signing to the facilitator, for the channel of a deposit of which it charged 700. */
export function actionsOf(chain: HarnessChain, deposit: Body) {
  const { channelConfig, voucher } = deposit.paymentPayload.payload;
  const { receiver, token } = channelConfig;
  const claims = [claimRow(deposit, "700")];
  const refund = { type: "refund", channelConfig, voucher, amount: "9300", refundNonce: "0", claims };
  return {
    claim: channelAction(chain, receiver, { type: "claim", claims }),
    settle: channelAction(chain, receiver, { type: "settle", receiver, token }),
    refund: channelAction(chain, receiver, refund),
  };
}
