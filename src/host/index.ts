export { AppendFile } from './append-file.ts';
export { type FileMode, writeFileAtomic, writeFileAtomicSync } from './atomic-file.ts';
