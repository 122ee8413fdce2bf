/** The section of docs/errors.md about a mistake, a reason or a problem, all of which have one. */
export function errorsSection(name: string): string {
  return `docs/errors.md#${name}`;
}
