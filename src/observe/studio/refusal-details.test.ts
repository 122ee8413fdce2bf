import { expect, test } from "vitest";
import { problemDetails } from "../../protocol/problems.ts";
import { describeReceived } from "../channels/channels.ts";
import { explainReceived } from "./refusal-details.ts";

const contract = "0x00000000000000000000000000000000000000F0";

function explained(contentType: string | undefined, message: string) {
  const body = "\u001f\u008b";
  const [explanation] = explainReceived(
    { reason: "unsupported-media-type", message, at: 0 },
    describeReceived(body, { bytes: 2, isWhole: true, contentType }),
    { contracts: { mainnet: contract, testnet: contract } },
  );
  return explanation;
}

test.each(["application/json", "Application/JSON; charset=utf-8"])(
  "a compressed body that is said to be %s is not told to say so",
  (contentType) => {
    expect(explained(contentType, problemDetails.contentEncoding("gzip"))).toMatchObject({
      title: expect.stringContaining("compressed (gzip)"),
      at: "content-encoding",
      got: null,
      expected: null,
      fix: "Send the body as plain JSON, without content-encoding.",
    });
  },
);

test.each([
  ["text/plain", "text/plain"],
  ["application/json-seq", "application/json-seq"],
  [undefined, "none"],
])("a body of the type %s is told of the right one", (contentType, got) => {
  expect(explained(contentType, problemDetails.mediaType)).toMatchObject({
    at: "content-type",
    got,
    expected: "application/json",
  });
});
