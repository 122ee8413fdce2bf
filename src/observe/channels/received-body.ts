import { maskSecrets } from "../../util/mask-secrets.ts";
import type { ReceivedBody } from "./channels.ts";

/** Characters of a body that are kept: a payment has about a thousand. */
export const mostReceived = 4_096;

/** A body in which no payment could be read, as far as people need it. `isWhole`: nothing of it is missing. */
export function describeReceived(
  body: string,
  { bytes, isWhole, contentType }: Omit<ReceivedBody, "text">,
): ReceivedBody {
  const isShort = body.length <= mostReceived;
  const masked = maskSecrets(isShort ? body : body.slice(0, mostReceived), { isCut: !isShort || !isWhole });
  // A copy: a slice would keep all of the body in memory.
  const text = Buffer.from(masked).toString();
  return { text, bytes, isWhole: isShort && isWhole, contentType };
}
