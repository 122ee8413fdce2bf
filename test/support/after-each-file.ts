// Run with every file of tests: files one after the other share what is imported here.
import { afterAll } from "vitest";
import { killCommands } from "./cli.ts";
import { leaveSharedPostgres } from "./databases.ts";

afterAll(async () => {
  killCommands();
  await leaveSharedPostgres();
});
