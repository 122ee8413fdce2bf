/**
 * The variables of a process that a test starts: those that every program needs, and the folder of vitest.config.ts
 * where Node keeps what it has compiled.
 */
export function childEnvironment(): { PATH: string; HOME: string; NODE_COMPILE_CACHE: string } {
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE };
}
