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
  mainnet: "0xd9fB23B354E777535073E40a175bE861Acea47B5",
  testnet: "0x206ff2245f26519ae4bf3Ee832a2b99939549dA9",
} as const;
