import { mockUsdcDeployedBytecode } from "../../contracts/mockUsdc.ts";
import { usdcSignaturesDeployedBytecode } from "../../contracts/usdcSignatures.ts";
import type { Asset } from "../../protocol/networks.ts";
import { usdcImplementationAddress, usdcSignaturesAddress } from "../../published/accounts.ts";
import { mockUsdcInitCode } from "../../published/init-code.ts";
import type { PlacedContract } from "./place-contract.ts";

/** The mock of a token at the token's address: a proxy, as USDC's is, and the code behind it. */
export function mockToken(asset: Asset): PlacedContract {
  return {
    name: "MockUSDC",
    address: asset.address,
    initCode: mockUsdcInitCode(asset),
    code: [
      [usdcImplementationAddress, mockUsdcDeployedBytecode],
      [usdcSignaturesAddress, usdcSignaturesDeployedBytecode],
    ],
  };
}
