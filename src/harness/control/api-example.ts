import { type HarnessDescription, networksOf } from "./description.ts";

/** In seconds: a page may be open for long. */
const aDay = 86_400;

/** A key and a payment that work as they stand, for the page about the API; without a payment where none can be signed. */
export async function apiExampleOf(
  harness: HarnessDescription,
): Promise<{ apiKey: string; payment?: object }> {
  const { apiKey } = harness.organization;
  const [network] = networksOf(harness);
  if (network === undefined) return { apiKey };
  const { signPayment } = await import("./pay.ts");
  // A node that does not answer is no reason to show no API.
  const signed = await signPayment(harness, { network, validForSeconds: aDay }).catch(() => undefined);
  return { apiKey, ...(signed !== undefined && { payment: signed.request }) };
}
