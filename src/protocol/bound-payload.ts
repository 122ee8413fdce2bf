/**
 * What of a payment's payload makes it this payment and no other: an approval that came with it may be left out where it is not
 * needed. A module of its own, which most web pages do not load.
 */
export function boundPayload(payload: string): string {
  const { approval, approvalTransaction, ...bound } = JSON.parse(payload);
  return JSON.stringify(bound).toLowerCase();
}
