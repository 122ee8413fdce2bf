import { readAddress } from "../../protocol/address.ts";
import type { Address } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { aText, requireArgument } from "../../util/given.ts";

/** @throws KitError when what a person gave as an account is no address, or a mistyped one (EIP-55) */
export function requireAccount(text: string): Address {
  requireArgument("account", text, aText);
  const { address, problem } = readAddress(text);
  if (problem !== undefined) throw new KitError(`The account ${JSON.stringify(text)} ${problem}`);
  return address;
}
