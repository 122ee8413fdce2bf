import { expect, test } from "vitest";
import { answerUnreadableRequest } from "./problems.ts";

test.each([
  ["ERR_HTTP_REQUEST_TIMEOUT", 408, "retry_same_payment"],
  ["HPE_HEADER_OVERFLOW", 431, "fix_request"],
  ["HPE_INVALID_METHOD", 400, "fix_request"],
])("the answer to %s says what to do, and that a payment may have been taken", (code, status, nextAction) => {
  const answer = answerUnreadableRequest(code, "id");
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  expect(head).toContain(`HTTP/1.1 ${status} `);
  expect(JSON.parse(body)).toMatchObject({ status, nextAction, paymentState: "unknown" });
});
