import {
  isErc6492Signature,
  keccak256,
  parseErc6492Signature,
  recoverTypedDataAddress,
  size,
  slice,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { signAs } from "../../test/support/sign-as.ts";
import { undeployedWalletCall } from "../fixtures/engine/check-payment.ts";
import { signAuthorization, transferWithAuthorizationTypes } from "../methods/exact-eip3009/authorization.ts";
import { create2Deployer } from "../protocol/create2.ts";
import { networks } from "../protocol/networks.ts";
import { unwrapErc6492 } from "../protocol/signed-payment.ts";
import { createPayerSigner } from "./sign-as.ts";
import { type TestPayer, type TestPayerName, testPayers } from "./test-payers.ts";
import { undeployedWalletSalt, walletInitCode } from "./undeployed-wallet.ts";

const terms = {
  asset: networks.base.usdc,
  chainId: 8453,
  to: "0x1234567890123456789012345678901234567890",
  value: 10_000n,
  validBefore: 2_000_000_000n,
  nonce: `0x${"ab".repeat(32)}`,
} as const;

const { name, version, address: verifyingContract } = terms.asset;
const domain = { name, version, chainId: terms.chainId, verifyingContract };

describe("createPayerSigner", () => {
  it("signs as viem does, byte for byte", async () => {
    for (const { privateKey } of Object.values(testPayers)) {
      const account = privateKeyToAccount(privateKey);
      const signer = createPayerSigner(privateKey);
      expect(signer.address).toBe(account.address);
      expect(await signAuthorization(signer, terms)).toEqual(await signAuthorization(account, terms));
    }
  });
});

describe("signAs", () => {
  const others = Object.keys(testPayers).filter((payer) => payer !== "undeployedWallet");

  it.each(others as TestPayerName[])("signs as %s: from the payer, by its key", async (payer) => {
    const { address, owner }: TestPayer = testPayers[payer];
    const { authorization, signature } = await signAs(payer, terms);
    expect(authorization).toEqual({
      from: address,
      to: terms.to,
      value: terms.value,
      validAfter: 0n,
      validBefore: terms.validBefore,
      nonce: terms.nonce,
    });
    const signer = await recoverTypedDataAddress({
      domain,
      types: transferWithAuthorizationTypes,
      primaryType: "TransferWithAuthorization",
      message: authorization,
      signature,
    });
    expect(signer).toBe(owner ?? address);
  });

  it("wraps the undeployed wallet's signature with its deployment (ERC-6492)", async () => {
    const { owner, privateKey, address } = testPayers.undeployedWallet;
    const { signature } = await signAs("undeployedWallet", terms);
    expect(isErc6492Signature(signature)).toBe(true);
    const { address: factory, data, signature: inner } = parseErc6492Signature(signature);
    expect(factory?.toLowerCase()).toBe(create2Deployer.toLowerCase());
    if (data === undefined) throw new Error("no factory calldata");
    expect(slice(data, 0, 32)).toBe(undeployedWalletSalt);
    expect(slice(data, 32)).toBe(walletInitCode(owner));
    const plain = await signAuthorization(privateKeyToAccount(privateKey), { ...terms, from: address });
    expect(inner).toBe(plain.signature);
    expect(size(inner)).toBe(65);
    expect(unwrapErc6492(signature)).toEqual({
      factory: create2Deployer.toLowerCase(),
      factoryCalldata: data,
      signature: inner,
    });
    // The fixtures know the call by it, without the wallet's code.
    expect(keccak256(data)).toBe(undeployedWalletCall);
  });
});
