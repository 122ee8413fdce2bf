import type { Operation } from "../../protocol/problems.ts";
import type { HarnessDescription } from "./description.ts";

/** A command that sends the body of a payment to the running service, to paste into a terminal. */
export function curlOf(
  { facilitator, organization }: Pick<HarnessDescription, "facilitator" | "organization">,
  operation: Operation,
  body: Record<string, unknown>,
): string {
  return [
    `curl -s ${facilitator.url}/${operation} \\`,
    `  -H 'Authorization: ${organization.apiKey}' \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`,
  ].join("\n");
}
