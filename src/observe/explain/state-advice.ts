import { refusals } from "../../protocol/refusals.ts";

/** What one of the situations behind `invalid_transaction_state` means, and what to do. */
export type StateAdvice = { why: string; fix: string };

const anyHash = "0x";

/** The situations by how their messages begin. */
const advice: readonly (StateAdvice & { begins: string })[] = [
  {
    begins: refusals.payerBlacklisted().message,
    why: "The issuer of the token lets the payer neither send nor receive it.",
    fix: "Have another account pay: nothing that the shop or this payer changes will settle the payment.",
  },
  {
    begins: refusals.contractBlacklisted().message,
    why: "The issuer of the token lets the facilitator contract neither send nor receive it.",
    fix: "Ask those who run the facilitator; other networks and tokens are not affected.",
  },
  {
    begins: "The recipient 0x",
    why: "The issuer of the token lets the organization's wallet on this network not receive it.",
    fix: "Name another wallet for the network: `x402-kit org set-recipient`. The payer need not sign again.",
  },
  {
    begins: refusals.assetPaused().message,
    why: "The issuer of the token has stopped all transfers.",
    fix: "Send the same payment again later; the issuer says when.",
  },
  {
    begins: refusals.beingSettled().message,
    why: "The same payment is being settled by a request that came before this one.",
    fix: "Wait for the answer of that request, or send the same payment again in a few seconds. Do not sign again.",
  },
  {
    begins: refusals.settledBefore(anyHash).message,
    why: "Each authorization pays once, and this one has.",
    fix: "Deliver what was paid for once; if that was done, serve nothing. For another purchase, sign with a new nonce.",
  },
  {
    begins: refusals.failed(anyHash, "").message.split(anyHash)[0] ?? "",
    why: "The transaction was mined and reverted. Until validBefore has passed, the payment may still be made by others and recovered.",
    fix: "Ask for the settlement, which the header Location of the answer names, until it is recovered, or send the same payment again until the answer says sign_again, half an hour after validBefore; only then sign again.",
  },
  {
    begins: refusals.usedHere().message,
    why: "A payment pays once: this authorization was used, or cancelled by its payer.",
    fix: "If this very payment was settled before, it is paid: deliver once, and serve nothing if that was done. Otherwise sign with a new nonce; each payment needs one of its own.",
  },
  {
    begins: refusals.usedOnChain().message,
    why: "The token has this authorization as used, or cancelled by its payer, and this facilitator did not settle it.",
    fix: "Look up what used it before the payer signs again; each payment needs a nonce of its own.",
  },
];

/** Advice on the message of a refusal for `invalid_transaction_state`; undefined for one that is not known. */
export function stateAdvice(message: string | undefined): StateAdvice | undefined {
  return advice.find(({ begins }) => message?.startsWith(begins));
}

/** Whether a message is a refusal that names the payer first. */
function isOf(refusal: (payer: typeof anyHash) => { message: string }, message: string | undefined): boolean {
  const [begins = ""] = refusal(anyHash).message.split(anyHash);
  return message?.startsWith(`${begins}0x`) === true;
}

/** Whether there is code at the payer's address, so that no key's address is to be expected of the signature. */
export function isWalletsRefusal(message: string | undefined): boolean {
  const { walletRefuses, tokenRefusesSignature, payerHasCode } = refusals;
  return [walletRefuses, tokenRefusesSignature, payerHasCode].some((refusal) => isOf(refusal, message));
}

/** Advice on a refusal for the payer's code; undefined for others. */
export function walletAdvice(message: string | undefined): StateAdvice | undefined {
  if (isOf(refusals.payerHasCode, message)) {
    return {
      why: "The organization refuses contract wallets and accounts with a delegate (EIP-7702); the signature is not at fault.",
      fix: "Pay from a plain account, or let the organization accept them: `x402-kit org set-limits --payers-with-code accept`.",
    };
  }
  if (!isWalletsRefusal(message)) return undefined;
  return {
    why: "There is code at the payer's address: it decides by isValidSignature which signatures count, and has little gas for that.",
    fix: "Sign with the key of the wallet's owner, in the form that the wallet asks for, over the authorization as it is sent; or pay from another account.",
  };
}
