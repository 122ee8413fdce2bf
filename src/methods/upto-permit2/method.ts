import type { Method } from "../method.ts";
import { uptoPermit2 } from "../permit2/payload.ts";
import { uptoProxyAddress } from "../permit2/permit.ts";
import { createPermit2Method } from "../permit2/permit2-method.ts";

/** Scheme “upto” by Permit2: the payer signs a maximum, and settle says how much of it is taken, once. */
export const uptoPermit2Method: Method = createPermit2Method({
  name: uptoPermit2,
  scheme: "upto",
  spender: uptoProxyAddress,
  hasFacilitator: true,
});
