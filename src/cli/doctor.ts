import { defineCommand } from "./command.ts";
import { examine } from "./doctor-examination.ts";
import { renderExamination } from "./doctor-report.ts";
import { flag } from "./readers.ts";
import { loadEnvFile } from "./serve-environment.ts";

export const doctor = defineCommand({
  options: { json: flag("print one line of JSON") },

  async run({ json }, { print, env }) {
    loadEnvFile();
    const examination = await examine(env);
    print(json ? JSON.stringify(examination) : renderExamination(examination));
    return examination.safe ? 0 : 1;
  },
});
