import { describe, expect, test } from "vitest";
import { builtInNetworks, networks } from "../../protocol/networks.ts";
import { domainOf, separatorOf } from "../domains.ts";
import { otherDomains } from "./eip3009-people.ts";
import { likelyDomains } from "./explain-eip3009.ts";

describe.each(builtInNetworks.all)("for a payment on $name", (network) => {
  const right = { asset: network.usdc, chainId: network.chainId };
  const domains = otherDomains(right);
  const separators = domains.map(separatorOf);

  test("few domains are tried, each once, and never the right one", () => {
    // Each costs a recovery of 0.06 ms in the thread that also settles payments.
    expect(domains.length).toBeLessThan(140);
    // In the service they are tried for every payment that is refused, and two digests besides.
    expect(likelyDomains(right).length).toBeLessThanOrEqual(22);
    expect(new Set(separators).size).toBe(domains.length);
    expect(separators).not.toContain(separatorOf(domainOf(right)));
  });

  test("a wrong name, version, chain or token, and all of another network, are among them", () => {
    const { usdc, chainId } = network;
    const others = builtInNetworks.all.filter(({ name }) => name !== network.name);
    const signed = [
      { asset: { ...usdc, name: usdc.name === "USDC" ? "USD Coin" : "USDC" }, chainId },
      { asset: { ...usdc, name: "USD Coin (PoS)", version: "1" }, chainId },
      { asset: { ...usdc, version: "1" }, chainId },
      ...others.flatMap((other) => [
        { asset: usdc, chainId: other.chainId },
        { asset: other.usdc, chainId },
        { asset: { ...usdc, address: other.usdc.address }, chainId },
        { asset: other.usdc, chainId: other.chainId },
        { asset: { ...other.usdc, version: "1" }, chainId: other.chainId },
        { asset: { ...other.usdc, name: "Bridged USDC" }, chainId: other.chainId },
      ]),
    ];
    for (const domain of signed) expect(separators).toContain(separatorOf(domainOf(domain)));
  });
});

test("the network's own token is tried where another is asked for", () => {
  const { usdc, chainId } = networks.base;
  const asset = {
    name: "Euro Coin",
    version: "3",
    address: "0x00000000000000000000000000000000000000E0",
  } as const;
  const separators = otherDomains({ asset, chainId }).map(separatorOf);
  expect(separators).toContain(separatorOf(domainOf({ asset: usdc, chainId })));
});
