import { type Settling, usageOf } from "../../on-chain/settling.ts";
import { ownedChannels } from "../owners.ts";
import { channelMethods } from "../payloads.ts";
import { judgeVoucher } from "../vouchers.ts";
import { settledAlone, unknownToTests } from "./actions.ts";
import { sourceOf } from "./chain-source.ts";

const never = () => {
  throw new Error("a voucher is not settled by itself");
};

/** Vouchers are only verified: they move nothing until they are claimed. */
export const voucherSettling: Settling = {
  method: channelMethods.voucher,
  judge: (chain, { payment, id, price = 0n }) => judgeVoucher(sourceOf(chain, id), payment, price),
  channels: { ownedBy: ownedChannels },
  ...settledAlone(never),
  ...unknownToTests,
  plan: never,
  usual: usageOf(0n, { most: 0n, bytes: 0 }),
  prove: never,
  findPayout: never,
  stateOf: never,
  explain: never,
  isUsed: () => Promise.resolve(false),
};
