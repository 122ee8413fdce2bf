import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { serveVariables } from "../serve/variables.ts";
import { examine } from "./examination.ts";
import { renderExamination } from "./report.ts";

export const doctor = defineCommand({
  usesEnvFile: true,
  showsWarnings: true,
  options: { json: flag("print one line of JSON"), ...serveVariables },

  async run({ json }, { print, env, warnings }) {
    const examination = await examine(env, warnings);
    print(json ? JSON.stringify(examination) : renderExamination(examination));
    return examination.safe ? 0 : 1;
  },
});
