const STARTS: readonly { readonly mimeType: string; readonly matches: (bytes: Buffer) => boolean }[] = [
  { mimeType: 'image/png', matches: (bytes) => bytes.subarray(0, 8).toString('latin1') === '\x89PNG\r\n\x1a\n' },
  { mimeType: 'image/jpeg', matches: (bytes) => bytes.subarray(0, 3).toString('latin1') === '\xff\xd8\xff' },
  { mimeType: 'image/gif', matches: (bytes) => /^GIF8[79]a$/.test(bytes.subarray(0, 6).toString('latin1')) },
  {
    mimeType: 'image/webp',
    matches: (bytes) => /^RIFF[\s\S]{4}WEBP$/.test(bytes.subarray(0, 12).toString('latin1')),
  },
];

/** What kind of picture the bytes are, by how they begin and not by their name; undefined for anything else. */
export const imageTypeOf = (bytes: Buffer): string | undefined =>
  STARTS.find(({ matches }) => matches(bytes))?.mimeType;
