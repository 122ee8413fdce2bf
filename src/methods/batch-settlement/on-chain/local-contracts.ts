import type { LocalContract } from "../../on-chain/settling.ts";
import {
  batchSettlementAddress,
  erc3009CollectorAddress,
  multicall3Address,
  permit2CollectorAddress,
} from "../contracts.ts";

/** Stand-ins for contracts of public chains; only local chains load their code. */
export const batchSettlementContracts: readonly LocalContract[] = [
  {
    address: batchSettlementAddress,
    code: async () =>
      (await import("../../../contracts/mockBatchSettlement.ts")).mockBatchSettlementDeployedBytecode,
  },
  {
    address: erc3009CollectorAddress,
    code: async () =>
      (await import("../../../contracts/mockBatchSettlement.ts")).mockErc3009DepositCollectorDeployedBytecode,
  },
  {
    address: permit2CollectorAddress,
    code: async () =>
      (await import("../../../contracts/mockBatchSettlement.ts")).mockPermit2DepositCollectorDeployedBytecode,
  },
  {
    address: multicall3Address,
    code: async () => (await import("../../../contracts/mockPermit2.ts")).mockMulticall3DeployedBytecode,
  },
];
