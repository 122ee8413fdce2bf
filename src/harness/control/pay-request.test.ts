import { expect, test } from "vitest";
import { payRequest, readPayment } from "./pay-request.ts";

const asked = { network: "base", payer: "funded", amount: "1" };
const read = (times: object) =>
  readPayment(payRequest.parse({ ...asked, ...times }), async () => 1_000n).then(({ times }) => times);

test("times are taken as unix seconds, or from the chain's time", async () => {
  expect(await read({})).toEqual({});
  expect(await read({ validAfter: "0", validBefore: "now+600" })).toEqual({
    validAfter: 0n,
    validBefore: 1_600n,
  });
  expect(await read({ validAfter: "now-60", validBefore: "now" })).toEqual({
    validAfter: 940n,
    validBefore: 1_000n,
  });
});

test("a time before 1970 is refused by its name", async () => {
  await expect(read({ validAfter: "now-1001" })).rejects.toThrow(
    "validAfter: now-1001 is before 1970, where unix time begins",
  );
});

test.each(["soon", "-60", "now60", "now+", "1e9", "", " 1", `${"9".repeat(16)}`])(
  "%j is no time",
  (validAfter) => {
    expect(payRequest.safeParse({ ...asked, validAfter }).success).toBe(false);
  },
);
