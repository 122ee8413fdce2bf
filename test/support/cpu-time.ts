/** The CPU time that this thread spends in a call, in milliseconds. Other work on the machine does not count. */
export function cpuMs(run: () => void): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
