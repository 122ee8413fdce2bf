import type { FixtureAnswer } from "../../../src/fixtures/engine/answer.ts";

/** The response of the fixtures, with placeholders for values that differ from the service's. */
export function loosen(answer: FixtureAnswer): FixtureAnswer {
  if (answer.kind !== "json") return answer;
  const { body, headers } = answer;
  const text = JSON.stringify(body)
    .replaceAll(/0x[0-9a-f]{64}/g, "<transaction>")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<timestamp>")
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<request-id>")
    .replaceAll(/(There is no [A-Z]+ [^;]+; )[^"]+/g, "$1<text>")
    .replaceAll(/"blockNumber":"\d+"/g, '"blockNumber":"<seconds>"')
    .replaceAll(/"retryAfterSeconds":\d+/g, '"retryAfterSeconds":"<seconds>"')
    .replaceAll(/"next":"[^"]+"/g, '"next":"<text>"')
    // The distance to a time, which depends on two clocks.
    .replaceAll(/( UTC, )[^)]+\)/g, "$1<text>)")
    .replaceAll(/time (is )?\d+/g, "time $1<time>")
    .replaceAll(/balance (of|is) \d+/g, "balance $1 <balance>");
  return {
    ...answer,
    headers: {
      ...headers,
      "x-request-id": "<request-id>",
      ...(headers["retry-after"] !== undefined && { "retry-after": "<seconds>" }),
    },
    body: JSON.parse(text),
  };
}
