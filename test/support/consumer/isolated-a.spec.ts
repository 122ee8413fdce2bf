import { isolationTests } from "./isolation.ts";

isolationTests();
