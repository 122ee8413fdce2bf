/**
 * What the messages of refusals advise, by the mistakes of `mistakes.ts`. It is sent in answers, so it is plain ASCII. It
 * has its own file because web pages with the fixtures need only this part of that table.
 */
export const advice = {
  "networks-differ": "Pass on the requirements that the payer chose from the challenge.",
  "wrong-asset": "Use the address of the network's own USDC.",
  "pay-to-is-not-the-contract":
    "Set payTo to the facilitator contract of the network, and your wallet with `x402-kit org set-recipient` (or `up --recipient`).",
  "signed-for-another-recipient":
    "The challenge must name the facilitator contract as payTo before the payer signs; sign again.",
  "amount-differs": "Sign the amount of the requirements.",
  "times-in-milliseconds": "Divide by 1000: now is Math.floor(Date.now() / 1000).",
  expired:
    "Sign again with a later validBefore, and settle at once. A payer's clock that is behind shortens every payment.",
  "not-valid-yet": 'Sign with validAfter "0", or set the payer\'s clock.',
  "signed-with-another-domain":
    "Sign for the token's own name and version, which clients take from `extra` of the requirements, and for the network's chain id.",
  "signed-receive": "Sign primaryType TransferWithAuthorization.",
  "signed-by-another-key":
    "Sign with the key of authorization.from, and send every member of the authorization as it was signed. If that is a smart wallet, the wallet itself decides (EIP-1271), and it must be deployed.",
  "malformed-signature": "Let the wallet sign typed data, and send its answer unchanged.",
} as const;
