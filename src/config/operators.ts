import type { Hex } from "../protocol/hex.ts";
import type { ConfigurationProblem } from "../util/errors.ts";
import type { Operators } from "./serve-config.ts";
import { warnOfClearText } from "./values.ts";
import type { VariableReader } from "./variable-reader.ts";

/** Where the operators' keys are; undefined when that cannot be read, which is noted as a problem. */
export function readOperators(
  reader: VariableReader,
  warnings: ConfigurationProblem[],
): Operators | undefined {
  const privateKeys = reader.read("OPERATOR_PRIVATE_KEY");
  const url = reader.read("OPERATOR_SIGNER_URL");
  const addresses = reader.read("OPERATOR_ADDRESS");
  const isLocal = reader.isSet("OPERATOR_PRIVATE_KEY");
  const isRemote = reader.isSet("OPERATOR_SIGNER_URL");

  if (isLocal && isRemote) {
    reader.refuse("OPERATOR_SIGNER_URL", "is set, and so is OPERATOR_PRIVATE_KEY; keep one of them");
  } else if (!isLocal && !isRemote) {
    reader.refuse("OPERATOR_PRIVATE_KEY", "is needed, or OPERATOR_SIGNER_URL with OPERATOR_ADDRESS");
  } else if (isRemote && !reader.isSet("OPERATOR_ADDRESS")) {
    reader.refuse("OPERATOR_ADDRESS", "is needed with OPERATOR_SIGNER_URL");
  }
  if (privateKeys !== undefined) return { kind: "local", privateKeys };
  if (url === undefined || addresses === undefined) return undefined;
  const danger = "an attacker on the way could have transactions signed";
  warnings.push(...warnOfClearText("OPERATOR_SIGNER_URL", [url], danger));
  return { kind: "remote", url, addresses };
}

/** The key of the recoverer, which must be another than those of the operators. */
export function readRecovererKey(reader: VariableReader, operators: Operators | undefined): Hex | undefined {
  const key = reader.read("RECOVERER_PRIVATE_KEY");
  if (key !== undefined && operators?.kind === "local" && operators.privateKeys.includes(key)) {
    reader.refuse(
      "RECOVERER_PRIVATE_KEY",
      "is an operator's key: one that leaks could then do both; use another",
    );
  }
  return key;
}
