import { defineCommand } from "./command.ts";
import { examine } from "./doctor-examination.ts";
import { renderExamination } from "./doctor-report.ts";
import { flag } from "./readers.ts";
import { serveVariables } from "./serve-variables.ts";

export const doctor = defineCommand({
  usesEnvFile: true,
  options: { json: flag("print one line of JSON"), ...serveVariables },

  async run({ json }, { print, env }) {
    const examination = await examine(env);
    print(json ? JSON.stringify(examination) : renderExamination(examination));
    return examination.safe ? 0 : 1;
  },
});
