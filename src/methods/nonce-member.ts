/**
 * What the nonce of a payment is called in the JSON of settlements, journals and transactions. Programs read that name, so
 * it stays as it was when there was one way to pay.
 */
export const nonceMember = "authorizationNonce";
