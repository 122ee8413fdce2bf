/** The variables for a test's process: those that every program needs, and the compile cache from vitest.config.ts. */
export function childEnvironment(): { PATH: string; HOME: string; NODE_COMPILE_CACHE: string } {
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE };
}
