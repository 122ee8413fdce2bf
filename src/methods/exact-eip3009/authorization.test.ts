import { verifyTypedData } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { keccak256Text } from "../../protocol/hex.ts";
import { networks } from "../../protocol/networks.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import { domainSeparator } from "../eip712.ts";
import { authorizationDigest, signAuthorization, transferWithAuthorizationTypes } from "./authorization.ts";

const domainSeparatorsOnChain = {
  base: "0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f",
  "base-sepolia": "0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818",
  optimism: "0x26d9c34bb1a1c312f69c53b2d93b8be20faafba63af2438c6811713c9b1f933f",
  "optimism-sepolia": "0x09d038a3e46040fc37eb01174dbbcdb7981fbd8eafd9e1a857b1c67805dfb29e",
  polygon: "0xcaa2ce1a5703ccbe253a34eb3166df60a705c561b44b192061e28f2a985be2ca",
} as const;

test.each(Object.values(networks))(
  "the USDC of $name has the domain separator that the chain gives",
  (network) => {
    expect(domainSeparator(network.usdc, network.chainId)).toBe(domainSeparatorsOnChain[network.name]);
  },
);

test("the digest of the x402 specification's example is the published one", () => {
  const { usdc, chainId } = networks["base-sepolia"];
  const digest = authorizationDigest(domainSeparator(usdc, chainId), {
    from: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
    to: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
    value: 10000n,
    validAfter: 1740672089n,
    validBefore: 1740672154n,
    nonce: "0xf3746613c2d920b5fdabc0856f2aeb2d4f88ee6037b8cc5d04a71a4462f13480",
  });
  expect(digest).toBe("0xf256992871671abcb27ff92885a7afa46218724e5fc0bac35d050115aa1d22e6");
});

test("a payer's signature is the EIP-712 signature that wallets make", async () => {
  const account = privateKeyToAccount(keccak256Text("a payer"));
  const { usdc, chainId } = networks.optimism;
  const to = "0x00000000000000000000000000000000000000F0";
  const { authorization, signature } = await signAuthorization(account, {
    asset: usdc,
    chainId,
    to,
    value: 5n,
    validBefore: 2_000_000_000n,
  });
  expect(authorization).toMatchObject({ from: account.address, to, value: 5n, validAfter: 0n });
  expect(
    await verifyTypedData({
      address: account.address,
      domain: { name: usdc.name, version: usdc.version, chainId, verifyingContract: usdc.address },
      types: transferWithAuthorizationTypes,
      primaryType: "TransferWithAuthorization",
      message: authorization,
      signature,
    }),
  ).toBe(true);
});

test("every authorization gets its own nonce", async () => {
  const account = privateKeyToAccount(keccak256Text("a payer"));
  const terms = {
    asset: networks.base.usdc,
    chainId: 8453,
    to: networks.base.usdc.address,
    value: 1n,
    validBefore: 1n,
  };
  const nonces = await Promise.all(
    [1, 2, 3].map(async () => (await signAuthorization(account, terms)).authorization.nonce),
  );
  expect(new Set(nonces).size).toBe(3);
});

test("a settlement's id depends on chain, asset, payer and nonce, and not on their casing", () => {
  const asset = networks.base.usdc.address;
  const payer = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
  const nonce = `0x${"aB".repeat(32)}` as const;
  const id = settlementId(8453, asset, payer, nonce);
  const lower = (hex: string) => hex.toLowerCase() as `0x${string}`;
  expect(settlementId(8453, lower(asset), lower(payer), lower(nonce))).toBe(id);
  const others = [
    settlementId(10, asset, payer, nonce),
    settlementId(8453, payer, payer, nonce),
    settlementId(8453, asset, asset, nonce),
    settlementId(8453, asset, payer, `0x${"00".repeat(32)}`),
  ];
  expect(new Set([id, ...others]).size).toBe(5);
});
