import { nameOfLocalToken } from "../../payer/local-chains.ts";
import { formatUnits, type TokenUnits } from "../../protocol/token-units.ts";

/** Where the advice is shown, and the payment it is about. */
export type AdviceContext = {
  /** The option for commands to reach the service, such as ` --url http://…`; empty at the default address. */
  at: string;
  network: string | null;
  payer: string | null;
  /** In the token's smallest unit. */
  amount: string | null;
  /** The token's address. */
  asset: string | null;
  token: TokenUnits | null;
};

/**
 * The options that a command in an advice needs for a payment, each with a leading space. Undefined if the command
 * needs more than the payment has.
 */
export function optionsOf(
  words: string,
  { at, network, payer, amount, asset, token }: AdviceContext,
): string | undefined {
  if (words === "reset" || words.startsWith("why ")) return at;
  const local = nameOfLocalToken(asset ?? "");
  const ofToken = local === undefined ? "" : ` --asset ${local}`;
  if (words === "approve" && network !== null && payer !== null) {
    return ` --network ${network} --account ${payer}${ofToken}${at}`;
  }
  if (words !== "fund" || network === null || payer === null || amount === null) return undefined;
  const price = token === null ? `${amount} --units` : formatUnits(amount, token.decimals);
  return ` --network ${network} --to ${payer}${ofToken} --amount ${price}${at}`;
}
