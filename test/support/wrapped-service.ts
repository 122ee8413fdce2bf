import type { Chain } from "../../src/chain/chain.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { createService, type Service } from "../../src/service/service.ts";
import { openParts, type ServiceOptions } from "../../src/service/service-parts.ts";

/** A test's wrappers around a service's ledger or chains. */
export type Wrap = { ledger?(ledger: Ledger): Ledger; chain?(chain: Chain): Chain };

/** Creates the service as in production, with the test's wrappers around its ledger and chains. */
export function createWrappedService(wrap: Wrap | undefined, options: ServiceOptions): Promise<Service> {
  const { ledger, chains, ...others } = openParts(options);
  const wrapChain = (chain: Chain) => wrap?.chain?.(chain) ?? chain;
  const wrapped = [...chains].map(
    ([name, [first, ...more]]) => [name, [wrapChain(first), ...more.map(wrapChain)]] as const,
  );
  return createService(options, {
    ...others,
    ledger: wrap?.ledger?.(ledger) ?? ledger,
    chains: new Map(wrapped),
  });
}
