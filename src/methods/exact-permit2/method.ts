import type { Method } from "../method.ts";
import { exactPermit2 } from "../permit2/payload.ts";
import { exactProxyAddress } from "../permit2/permit.ts";
import { createPermit2Method } from "../permit2/permit2-method.ts";

/** Scheme “exact” by Permit2: any ERC-20 whose payers have approved Permit2. Version 2 of the protocol alone has it. */
export const exactPermit2Method: Method = createPermit2Method({
  name: exactPermit2,
  scheme: "exact",
  spender: exactProxyAddress,
  hasFacilitator: false,
});
