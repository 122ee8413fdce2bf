/**
 * The part of a payload that identifies the payment: without an approval, which may be omitted when not needed. A
 * module of its own, because most web pages do not load it.
 */
export function boundPayload(payload: string): string {
  const { approval, approvalTransaction, ...bound } = JSON.parse(payload);
  return JSON.stringify(bound).toLowerCase();
}
