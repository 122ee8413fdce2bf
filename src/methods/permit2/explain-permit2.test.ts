import { concat, type Hex, hashTypedData } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { recoverSigner } from "../../chain/signing/recover-signer.ts";
import { keccak256Text } from "../../protocol/hex.ts";
import { networks } from "../../protocol/networks.ts";
import { describePermitMistake } from "./explain-permit2.ts";
import type { Permit } from "./permit.ts";
import { signPermit, typedPermit } from "./sign-permit.ts";

const payer = privateKeyToAccount(keccak256Text("a payer"));
const stranger = privateKeyToAccount(keccak256Text("a stranger"));
const { usdc, chainId } = networks.base;
const terms = {
  chainId,
  token: usdc.address,
  to: stranger.address,
  amount: 10_000n,
  deadline: 2_000_000_000n,
};

type Typed = ReturnType<typeof typedPermit>;
type Shop = { facilitator?: Hex; signs: (typed: Typed, permit: Permit) => Promise<Hex> };

const sign = (typed: object) =>
  payer.sign({ hash: hashTypedData(typed as Parameters<typeof hashTypedData>[0]) });
const withDomain = (changes: object) => (typed: Typed) =>
  sign({ ...typed, domain: { ...typed.domain, ...changes } });
const withMessage = (changes: object) => (typed: Typed) =>
  sign({ ...typed, message: { ...typed.message, ...changes } });
const withWitness = (members: readonly { name: string; type: string }[]) => (typed: Typed) =>
  sign({
    ...typed,
    types: { ...typed.types, Witness: members },
    message: { ...typed.message, witness: { ...typed.message.witness, extra: "0x" } },
  });
const [to, validAfter, by] = [
  { name: "to", type: "address" },
  { name: "validAfter", type: "uint256" },
  { name: "facilitator", type: "address" },
];

test.each<[string, Shop, RegExp]>([
  [
    "another chain",
    { signs: withDomain({ chainId: 84532 }) },
    /signed for chain 84532\. Sign for the domain of Permit2/,
  ],
  [
    "the domain of the token",
    { signs: withDomain({ name: usdc.name, version: usdc.version, verifyingContract: usdc.address }) },
    /signed for the domain of the token\. .*no version/,
  ],
  [
    "a domain with a version",
    { signs: withDomain({ version: "1" }) },
    /a domain with version "1"\. .*no version/,
  ],
  [
    "the proxy of the other scheme",
    { signs: withMessage({ spender: "0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002" }) },
    /the spender 0x4020A4f3.*x402ExactPermit2Proxy/,
  ],
  [
    "the facilitator as spender",
    { signs: withMessage({ spender: stranger.address }) },
    /the spender 0x.*The spender is/,
  ],
  [
    "no witness",
    {
      signs: (typed) =>
        sign({
          ...typed,
          primaryType: "PermitTransferFrom",
          types: {
            PermitTransferFrom: typed.types.PermitWitnessTransferFrom.slice(0, 4),
            TokenPermissions: typed.types.TokenPermissions,
          },
        }),
    },
    /a permit without a witness\. The witness is/,
  ],
  [
    "the witness in another order",
    { signs: withWitness([validAfter, to]) },
    /a witness of type Witness\(uint256 validAfter,address to\)/,
  ],
  [
    "the witness of an older version",
    { signs: withWitness([to, validAfter, { name: "extra", type: "bytes" }]) },
    /a witness of type Witness\(address to,uint256 validAfter,bytes extra\)/,
  ],
  [
    "the members of the witness of scheme upto in another order",
    { facilitator: stranger.address, signs: withWitness([to, validAfter, by]) },
    /Witness\(address to,uint256 validAfter,address facilitator\)\. The witness is/,
  ],
  [
    "the witness of scheme exact for scheme upto",
    { facilitator: stranger.address, signs: withWitness([to, validAfter]) },
    /Witness\(address to,uint256 validAfter\)\. The witness is/,
  ],
  [
    "nonce and deadline in each other's place",
    { signs: (typed, { nonce, deadline }) => withMessage({ nonce: deadline, deadline: nonce })(typed) },
    /nonce and deadline in each other's place/,
  ],
  [
    "another key",
    {
      signs: (typed) => stranger.sign({ hash: hashTypedData(typed as Parameters<typeof hashTypedData>[0]) }),
    },
    new RegExp(`the signature of ${stranger.address}\\. Sign with the key of permit2Authorization.from`),
  ],
  [
    "64 bytes",
    { signs: async (typed) => `0x${(await sign(typed)).slice(4)}` },
    /It has 64 bytes, and that of an account without code has 65\. Let the wallet/,
  ],
  ["no signature", { signs: async () => concat(["0x", "0x"]) }, /It has 0 bytes/],
])(
  "a permit signed with %s: the message says what to change",
  async (_what, { facilitator, signs }, says) => {
    const { permit } = await signPermit(payer, { ...terms, facilitator });
    const signature = await signs(typedPermit(permit, chainId), permit);
    const message = await describePermitMistake(
      { permit, signature },
      { asset: usdc, chainId },
      recoverSigner,
    );
    expect(message).toMatch(says);
    expect(message).toMatch(/^[\x20-\x7e]+$/);
  },
);
