import { buy } from "./buy.ts";

const { X402_URL, X402_PRIVATE_KEY, X402_CAIP2, X402_ASSET, X402_MAX_AMOUNT, X402_HEADER } = process.env;

const [, name = "", value = ""] = /^([^:]+):\s*(.*)$/.exec(X402_HEADER ?? "") ?? [];
console.log(
  await buy({
    url: X402_URL ?? "",
    privateKey: `0x${X402_PRIVATE_KEY?.slice(2)}`,
    network: `eip155:${Number(X402_CAIP2?.split(":")[1])}`,
    asset: X402_ASSET ?? "",
    maxAmount: BigInt(X402_MAX_AMOUNT ?? 0),
    headers: name === "" ? {} : { [name]: value },
    timeoutMs: 5_000,
  }),
);
