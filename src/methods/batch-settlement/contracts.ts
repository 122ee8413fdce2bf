import type { Address } from "../../protocol/hex.ts";

/*
 * The contracts of the x402 scheme "batch-settlement": an escrow for channels, and two collectors that bring the tokens of
 * a deposit to it. Each has the same address on every chain (CREATE2).
 */

/** `x402BatchSettlement`. */
export const batchSettlementAddress: Address = "0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003";

/** `ERC3009DepositCollector`, the payee of a deposit's authorization. */
export const erc3009CollectorAddress: Address = "0x4020806089470a89826cB9fB1f4059150b550004";

/** `Permit2DepositCollector`, the spender of a deposit's permit. */
export const permit2CollectorAddress: Address = "0x4020425FAf3B746C082C2f942b4E5159887B0005";

/** Multicall3, which deploys a payer's wallet before its deposit. Public chains have it, and public clients use it. */
export const multicall3Address: Address = "0xcA11bde05977b3631167028862bE2a173976CA11";
