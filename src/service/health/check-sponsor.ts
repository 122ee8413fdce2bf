import { expectAnswer } from "../../chain/deploy/endpoints.ts";
import { readQuantity } from "../../protocol/hex.ts";
import { formatCoins, formatCount } from "../../protocol/token-units.ts";
import { type NetworkCheck, ok, warning } from "./check.ts";

/** The name of this check, by which readiness finds what it says. */
export const sponsorCheckName = "gifts";

/**
 * Checks that the sponsor has what it may give in a day. Where it has not, payers who lack gas for an approval are told to
 * approve by themselves; everything else goes on.
 */
export const sponsorCheck: NetworkCheck = {
  name: sponsorCheckName,
  required: false,
  calls: ({ network, sponsor }) =>
    sponsor === undefined || network.gifts === undefined
      ? []
      : [{ method: "eth_getBalance", params: [sponsor, "latest"] }],
  read([answer], { network, sponsor: account }) {
    const { gifts } = network;
    if (answer === undefined || account === undefined || gifts === undefined) return [];
    const balance = expectAnswer("the balance of the sponsor", answer, readQuantity);
    const has = `${formatCoins(balance, network)} of the sponsor ${account}`;
    const { each, daily } = gifts;
    if (balance >= daily) {
      return [ok(sponsorCheckName, `${has} are a day's gifts, ${formatCoins(daily, network)}`, { account })];
    }
    // A gift takes gas besides what is given.
    const count = balance <= each ? 0n : balance / each;
    const detail =
      count === 0n
        ? `${has} do not cover one gift, up to ${formatCoins(each, network)} and its gas: payers without gas are told to approve Permit2 by themselves`
        : `${has} cover ${formatCount(count)} gifts of ${formatCoins(each, network)}, and not the ${formatCoins(daily, network)} that may be given in a day`;
    const { name, nativeCoin } = network;
    const advice = `Send it ${nativeCoin} on ${name}, or lower ${count === 0n ? "MAX_GIFT" : "DAILY_GIFTS"}=${name}=….`;
    return [warning(sponsorCheckName, detail, advice, { account })];
  },
};
