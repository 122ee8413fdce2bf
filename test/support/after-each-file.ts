// Imported by every test file: files that run one after the other in a worker share what is imported here.
import { afterAll } from "vitest";
import { killCommands } from "./cli.ts";
import { leaveSharedPostgres } from "./databases.ts";

afterAll(async () => {
  killCommands();
  await leaveSharedPostgres();
});
