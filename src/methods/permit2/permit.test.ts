import { hashTypedData } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { readToEnd } from "../../../test/support/read-part.ts";
import { networks } from "../../protocol/networks.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import {
  type Permit,
  permit2Separator,
  permitDigest,
  permitHash,
  permitTypehashes,
  permittedHash,
  witnessHash,
} from "./permit.ts";
import { exactPermit2Method, uptoPermit2Method } from "./permit2-methods.ts";
import { permitOf, permitPayment, writePermitPayload } from "./permit2-payload.ts";
import { signApproval } from "./sign-approval.ts";
import { signPermit, typedPermit } from "./sign-permit.ts";

/*
 * Both payments were settled by the contracts that stand on public chains; their hashes are those of the public packages.
 */

const payer = privateKeyToAccount("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d");
const chainId = 84532;
const terms = {
  chainId,
  token: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
  to: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
  nonce: 33247007178036348590600198031289925668252061821958005840077069883511451257277n,
  deadline: 1740672154n,
  validAfter: 1740672089n,
} as const;
const vectors = {
  exact: {
    terms: { ...terms, amount: 10_000n },
    method: exactPermit2Method,
    permitted: "0x8a320c6226077ff73fae601a9ffd16445c55f717ef1cfd2f7905c573e75c03a4",
    witnessType: "0xd97b3239a7f32295517bd14cb074edfdd188dfe5eb42f802bb26d4fd1eb12c37",
    witness: "0x1d9a4354ed1358fb2043e93ba167a9ece2fabb07018aec3d609abccd18aec24b",
    primaryType: "0xebc156cd23678a74c94df13d772ef5478420637f0c94bd10d509e1dc98f521c7",
    struct: "0xf9efd2ab5ec37a11f062cfbde5dd2654b11aa7c03eedbac1f9bf0efd67b2d8b4",
    digest: "0x21528e1468aac114016416353e2309329f217dc180b21baa1d81cde941095685",
    signature:
      "0x3786aca99c1c6b5fb899a8981bb38989f17b6f858ca3a64538578f06d5e7a3d743b4646fc4068d368ac9c6d03c4f41bc06098f25d559c7178be11adb1ccc749b1b",
  },
  upto: {
    terms: {
      ...terms,
      amount: 20_000n,
      facilitator: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC" as const,
    },
    method: uptoPermit2Method,
    permitted: "0x201635be169378d891524340e163d2575297ab1d2dac3ecb39cb9824a0324d66",
    witnessType: "0xd4171c445a74218b01d4fd8af34ff1106580ea1e36ff837e64484bfaa2253b75",
    witness: "0x29ab19849d58deb82616faea425cd556386689bf596adac686484dc31a6f0c5c",
    primaryType: "0x51dff6974ad4388c499e7fcfe838d2bd767162553a144098ce20ea661d70c2ee",
    struct: "0x5b0ca60586376ba72566a5be85133ddbf27736346acf3dae5863789a945b5485",
    digest: "0x54a0d2168fc229a32f53ad75b9e9b0325c3b3609cf0ad95b0401438176f91ad8",
    signature:
      "0x4fde5bb0541acc4d260147535719f380eeb40bb0b34caf30e81454cb80f313d664a9fbfc1951665aa9d6dce2d49d453f24756c99929889f9372049a1b81be10e1b",
  },
} as const;

test("the domain of Permit2 and the type of what may be taken are the public ones", () => {
  expect(permit2Separator(chainId)).toBe(
    "0x010f27a92fb9a32622f44f001dc4d15706a85b33499cfc2ce9033113ab26592c",
  );
  expect(permitTypehashes.permitted).toBe(
    "0x618358ac3db8dc274f0cd8829da7e234bd48cd73c4a740aede1adec9846d06a1",
  );
});

test.each(["exact", "upto"] as const)(
  "a payment of scheme %s is hashed and signed as public clients do",
  async (scheme) => {
    const { terms, method, ...vector } = vectors[scheme];
    const { permit, signature } = await signPermit(payer, terms);
    expect({
      permitted: permittedHash(permit),
      witnessType: permitTypehashes.witness[scheme],
      witness: witnessHash(permit),
      primaryType: permitTypehashes.primary[scheme],
      struct: permitHash(permit),
      digest: permitDigest(permit2Separator(chainId), permit),
      signature,
    }).toEqual(vector);
    const digestOf = method.digester(
      { address: terms.token, name: "USDC", version: "2", decimals: 6 },
      chainId,
    );
    const payment = permitPayment({ permit, signature });
    expect(digestOf(payment)).toBe(vector.digest);
    expect(permitOf(payment)).toEqual(permit);
    expect(payment).toMatchObject({
      method: method.name,
      window: { first: 1740672089n, last: 1740672154n },
      nonce: `0x${terms.nonce.toString(16)}`,
    });
    const read = readToEnd(method.write(payment), "payload", (part) =>
      method.read(part, terms.token, undefined),
    );
    expect(read).toEqual({ value: payment, malformed: [] });
    expect(method.write(payment)).toEqual(writePermitPayload(permit, signature));
  },
);

test("what signs digests alone signs the same as a wallet", async () => {
  const signer = {
    address: payer.address,
    signDigest: (digest: `0x${string}`) => payer.sign({ hash: digest }),
  };
  const { signature } = await signPermit(signer, vectors.upto.terms);
  expect(signature).toBe(vectors.upto.signature);
  const { name, version, address } = networks["base-sepolia"].usdc;
  const approval = { asset: { name, version, address }, chainId, amount: 1n, nonce: 2n, deadline: 3n };
  expect(await signApproval(signer, approval)).toEqual(await signApproval(payer, approval));
});

test("a spender of one's own choice is part of the payment", async () => {
  const { permit, signature } = await signPermit(payer, { ...vectors.exact.terms, spender: payer.address });
  expect(permitOf(permitPayment({ permit, signature }))).toEqual(permit);
  expect(permitDigest(permit2Separator(chainId), permit)).toBe(hashTypedData(typed(permit)));
});

/** As viem takes it, whose types want to know the primary type. */
function typed(permit: Permit) {
  const { primaryType, ...rest } = typedPermit(permit, chainId);
  return { ...rest, primaryType: primaryType as "PermitWitnessTransferFrom" };
}

test("one nonce is one payment, whatever token or scheme it is signed for", async () => {
  const idOf = async (changes: Partial<Permit>) => {
    const { permit, signature } = await signPermit(payer, { ...vectors.exact.terms, ...changes });
    const { nonceSpace, payer: from, nonce } = permitPayment({ permit, signature });
    return settlementId(chainId, nonceSpace, from, nonce);
  };
  const id = await idOf({});
  expect(await idOf({ token: payer.address })).toBe(id);
  expect(await idOf({ facilitator: payer.address })).toBe(id);
  expect(await idOf({ nonce: 1n })).not.toBe(id);
});
