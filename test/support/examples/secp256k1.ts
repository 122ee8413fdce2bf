import { secp256k1 } from "@noble/curves/secp256k1";

/*
 * secp256k1 for the stand-ins: `public KEY` prints the uncompressed public key; `sign KEY DIGEST` prints r, s and the
 * recovery id. All in hexadecimal.
 */

const [operation, key = "", digest = ""] = process.argv.slice(2);
if (operation === "public") {
  process.stdout.write(Buffer.from(secp256k1.getPublicKey(key, false)).toString("hex"));
} else {
  const signature = secp256k1.sign(digest, key);
  process.stdout.write(`${signature.toCompactHex()}0${signature.recovery}`);
}
