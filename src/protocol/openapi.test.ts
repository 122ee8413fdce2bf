import { expect, test } from "vitest";
import { payloadSchemas } from "../methods/payment-request-schema.ts";
import { membersOf } from "../util/json.ts";
import { describeService } from "./openapi.ts";

/** The names of the headers that an answer of a route may have, by the document. */
function headersOf(path: string, method: string, status: string): readonly string[] {
  const { paths } = membersOf(describeService(payloadSchemas));
  const operation = membersOf(membersOf(membersOf(paths)[path])[method]);
  const response = membersOf(membersOf(operation.responses)[status]);
  return Object.keys(membersOf(response.headers));
}

test.each([
  ["/v1/verify", "post", "200", ["X-Request-Id"]],
  ["/v1/verify", "post", "401", ["X-Request-Id", "WWW-Authenticate"]],
  ["/v1/settle", "post", "200", ["X-Request-Id", "Location"]],
  ["/v1/settle", "post", "503", ["X-Request-Id", "Retry-After", "Location", "X-Settlement-State"]],
  ["/v1/settlements", "get", "429", ["X-Request-Id", "Retry-After", "RateLimit-Limit"]],
  ["/v1/supported", "get", "429", ["X-Request-Id", "Retry-After", "RateLimit-Limit"]],
])("the headers of %s %s %s are documented", (path, method, status, names) => {
  expect(headersOf(path, method, status)).toEqual(expect.arrayContaining(names));
});
