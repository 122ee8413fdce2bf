import type { Address } from "../protocol/hex.ts";

/** Addresses of the harness's own accounts, without their keys, which pages need not carry. */
export const harnessAddresses = {
  operator: "0x750bAd95cdbC92De8024b090caE68D6202FE5b74",
  admin: "0xd3dCBA5401554200d4AAe2635B94f4fdb45374Fd",
  recipient: "0xFf85c7DD609eEF8C98199F798B1D6227A3426520",
} as const satisfies Record<string, Address>;

/**
 * Where the local chains have the facilitator contract by default: where the public CREATE2 deployer would put it with
 * the accounts of the harness. Written down, since hashing the code takes a young process 10 ms; a test compares.
 */
export const localContracts = {
  mainnet: "0x4E782726E82e776099A7c95486A32519583f82E3",
  testnet: "0x9425c41F9A16A0a8035f120c2c734Fd4715C933f",
} as const;

/** What the sponsor of local chains gives, in wei: at once, and on one day. */
export const localGifts = { each: 10n ** 16n, daily: 10n ** 18n } as const;

/** The most that is paid per gas on local chains, in wei: their coins cost nothing. */
export const localMaxFeePerGas = 1_000_000_000_000n;
