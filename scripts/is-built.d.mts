export function areAsNoted(root: string, file: string): boolean;
export function lookAt(path: string): readonly [size: number, mtimeMs: number, ctimeMs: number];
