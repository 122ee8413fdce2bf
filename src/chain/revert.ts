import { x402FacilitatorAbi } from "../contracts/x402Facilitator.ts";
import type { Hex } from "../protocol/hex.ts";
import { decodeParameters } from "./decode-parameters.ts";
import { selector } from "./views.ts";

/** Decoded revert data. */
export type Revert =
  /** `Error(string)`, as USDC reverts. */
  | { kind: "error"; message: string }
  /** `Panic(uint256)`. */
  | { kind: "panic"; code: bigint }
  /** A custom error of the facilitator contract (or of OpenZeppelin inside it). */
  | { kind: "custom"; name: string; args: readonly unknown[] }
  /** Anything else, empty data included. */
  | { kind: "unknown"; data: Hex };

type Decoder = (parameters: Hex) => Revert | undefined;

const decoders: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ...x402FacilitatorAbi
    .filter((item) => item.type === "error")
    .map(({ name, inputs }): [string, Decoder] => {
      const types: readonly string[] = inputs.map(({ type }) => type);
      return [
        selector(`${name}(${types.join(",")})`),
        (parameters) => {
          const args = decodeParameters(types, parameters);
          return args && { kind: "custom", name, args };
        },
      ];
    }),
  [
    selector("Error(string)"),
    (parameters) => {
      const [message] = decodeParameters(["string"], parameters) ?? [];
      return typeof message === "string" ? { kind: "error", message } : undefined;
    },
  ],
  [
    selector("Panic(uint256)"),
    (parameters) => {
      const [code] = decodeParameters(["uint256"], parameters) ?? [];
      return typeof code === "bigint" ? { kind: "panic", code } : undefined;
    },
  ],
]);

/** Reads revert data against the contract's ABI. Never throws: what cannot be read is `unknown`. */
export function decodeRevert(data: Hex): Revert {
  const decode = decoders.get(data.slice(0, 10).toLowerCase());
  return decode?.(`0x${data.slice(10)}`) ?? { kind: "unknown", data };
}

/** A revert in a few words, for the organization whose payment it stopped. */
export function describeRevert(revert: Revert): string {
  switch (revert.kind) {
    case "error":
      return revert.message;
    case "custom":
      return revert.name;
    case "panic":
      return `panic ${revert.code}`;
    case "unknown":
      return "no reason given";
  }
}
