import type { Address } from "../protocol/hex.ts";

/** Addresses of the harness's own accounts, without their keys, which pages need not carry. */
export const harnessAddresses = {
  operator: "0x750bAd95cdbC92De8024b090caE68D6202FE5b74",
  admin: "0xd3dCBA5401554200d4AAe2635B94f4fdb45374Fd",
  recipient: "0xFf85c7DD609eEF8C98199F798B1D6227A3426520",
} as const satisfies Record<string, Address>;
