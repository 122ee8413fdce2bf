import { encodeFunctionData } from "viem";
import { expect, test } from "vitest";
import { x402FacilitatorAbi } from "../../contracts/x402Facilitator.ts";
import { hasRole } from "../views.ts";
import { encodeOperatorChange, roles } from "./contract-state.ts";

const account = "0x857b06519E91e3A54538791bDbb0E22373e36b66";

test("calls about roles are encoded as viem does", () => {
  const args = [roles.operator, account] as const;
  const encode = (functionName: "grantRole" | "revokeRole" | "hasRole") =>
    encodeFunctionData({ abi: x402FacilitatorAbi, functionName, args });
  expect(encodeOperatorChange("grant", account)).toBe(encode("grantRole"));
  expect(encodeOperatorChange("revoke", account)).toBe(encode("revokeRole"));
  expect(hasRole(account, roles.operator, account).data).toBe(encode("hasRole"));
});
