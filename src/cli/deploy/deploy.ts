import { variablesOf } from "../../config/variables.ts";
import { defineCommand } from "../kit/command.ts";
import { checkDeployOptions, deployOptions } from "./options.ts";

export const deployCommand = defineCommand({
  usesEnvFile: true,
  options: deployOptions,
  variables: variablesOf("deploy"),
  check: checkDeployOptions,

  async run(values, terminal) {
    const {
      network: name,
      json,
      yes,
      "grant-operator": grants = [],
      "revoke-operator": revocations = [],
    } = values;
    const { openSession } = await import("./session.ts");
    const mode = values["dry-run"] ? "dry run" : yes ? "send" : "ask";
    const session = openSession({ name, mode, json, terminal });
    if (grants.length + revocations.length === 0) {
      const { deployAnew } = await import("./deploy-contract.ts");
      return deployAnew(session, values);
    }
    const { changeOperators } = await import("./operators.ts");
    return changeOperators(session, {
      contract: values.contract,
      changes: [
        ...grants.map((account) => ({ change: "grant", account }) as const),
        ...revocations.map((account) => ({ change: "revoke", account }) as const),
      ],
    });
  },
});
