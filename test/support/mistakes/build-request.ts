import { privateKeyToAccount } from "viem/accounts";
import type { HarnessDescription } from "../../../src/harness/control/description.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networks } from "../../../src/protocol/networks.ts";
import type { Mistake } from "./mistake.ts";

type Json = Record<string, unknown>;
type Body = { x402Version?: unknown } & Record<"paymentPayload" | "paymentRequirements", Json>;
type Account = ReturnType<typeof privateKeyToAccount>;
type TypedData = Parameters<Account["signTypedData"]>[0];

/** How a request differs from a good one: in the shop's requirements, the payer's signature over them, or how it is sent. */
export type RequestRow = Mistake & {
  /** The protocol version; 1 by default. */
  version?: 1 | 2;
  /** Wrong members in the shop's requirements. The payer signs what they say. */
  shop?: Json;
  /** Wrong members in the payer's EIP-712 domain; undefined removes one. */
  domain?: Json;
  /** The account that signs instead of the payer. */
  signer?: keyof typeof testPayers;
  /** Members of the authorization that are signed differently from the requirements. */
  signs?: Json;
  /** How the payer signs, if not as typed data. */
  sign?: (account: Account, typed: TypedData) => Promise<string>;
  /** Members of the authorization that are sent differently from how they were signed. */
  sends?: Json;
  /** Changes the finished body. */
  edit?: (body: Body) => unknown;
  /** Writes the body, if not as JSON. */
  write?: (body: Body) => string;
  /** The value of the Authorization header; undefined for no such header. */
  key?: { header: string | undefined } | ((good: string) => string);
  method?: string;
  path?: string;
  type?: string;
  /** The beginning of what `explain` says about the shop's own 402, if the shop is at fault. */
  challenge?: RegExp;
};

/** A request, with its body as JSON. */
export type WrongRequest = { path: string; method: string; headers: Record<string, string>; body: string };

/** The part of a description of `up` or `mock` that requests are built for. */
type Facilitator = {
  networks: Readonly<Record<string, Pick<HarnessDescription["networks"][string], "asset" | "payTo">>>;
  organization: { apiKey: string };
};

const member = (name: string, type: string) => ({ name, type });

/** The request of a client with a mistake, and its shop's 402. */
export async function buildRequest(
  row: Omit<RequestRow, keyof Mistake>,
  { networks: running, organization }: Facilitator,
): Promise<WrongRequest & { challenge: string }> {
  const { shop = {}, domain = {}, signs = {}, key, signer = "funded", version = 1, type } = row;
  const { base } = running;
  if (base === undefined) throw new Error("base does not run");
  const now = Math.floor(Date.now() / 1_000);
  const resource = "https://shop.example/";
  const ofVersion =
    version === 1
      ? {
          network: "base",
          maxAmountRequired: "10000",
          resource,
          description: "",
          mimeType: "application/json",
        }
      : { network: "eip155:8453", amount: "10000" };
  const requirements: Json = {
    scheme: "exact",
    ...ofVersion,
    asset: base.asset.address,
    payTo: base.payTo,
    maxTimeoutSeconds: 60,
    extra: { name: base.asset.name, version: base.asset.version },
    ...shop,
  };
  const message = {
    from: testPayers.funded.address,
    to: base.payTo,
    value: String(requirements.maxAmountRequired ?? requirements.amount),
    validAfter: "0",
    validBefore: String(now + Number(requirements.maxTimeoutSeconds)),
    nonce: `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex")}`,
    ...signs,
  };
  const all = {
    name: networks.base.usdc.name,
    version: "2",
    chainId: 8453,
    verifyingContract: base.asset.address,
    ...domain,
  };
  const typed: TypedData = {
    domain: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
    primaryType: "TransferWithAuthorization",
    types: {
      TransferWithAuthorization: [
        ...["from", "to"].map((name) => member(name, "address")),
        ...["value", "validAfter", "validBefore"].map((name) => member(name, "uint256")),
        member("nonce", "bytes32"),
      ],
    },
    message,
  };
  const account = privateKeyToAccount(testPayers[signer].privateKey);
  const signature = await (row.sign?.(account, typed) ?? account.signTypedData(typed));
  const payload = { signature, authorization: { ...message, ...row.sends } };
  const { scheme, network } = requirements;
  const body: Body = {
    x402Version: version,
    paymentPayload:
      version === 1
        ? { x402Version: 1, scheme, network, payload }
        : { x402Version: 2, resource: { url: resource }, accepted: { ...requirements }, payload },
    paymentRequirements: requirements,
  };
  row.edit?.(body);
  const header =
    typeof key === "function" ? key(organization.apiKey) : key ? key.header : organization.apiKey;
  return {
    path: row.path ?? "/v1/verify",
    method: row.method ?? "POST",
    headers: {
      "content-type": type ?? "application/json",
      ...(header !== undefined && { authorization: header }),
    },
    body: row.write?.(body) ?? JSON.stringify(body),
    challenge: JSON.stringify({ x402Version: version, error: "pay", accepts: [requirements] }),
  };
}
