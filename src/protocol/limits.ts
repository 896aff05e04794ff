/** Protocol versions that the gateway speaks; a client gets the highest in its range. */
export const PROTOCOL_VERSIONS = [3, 4] as const;

/** Bounds of a connection, in bytes and milliseconds. */
export const LIMITS = {
  preAuthFrameBytes: 64 * 1024,
  maxPayload: 25 * 1024 * 1024,
  maxBufferedBytes: 50 * 1024 * 1024,
  tickIntervalMs: 30_000,
  connectWithinMs: 10_000,
  /** Of a message's attachments, decoded. */
  attachments: { maxBytes: 6 * 1024 * 1024, maxImageBytes: 6 * 1024 * 1024 },
} as const;

/** The highest version inside the client's range, or undefined when there is none. */
export function agreedProtocol(range: {
  readonly minProtocol: number;
  readonly maxProtocol: number;
}): number | undefined {
  return PROTOCOL_VERSIONS.findLast((version) => version >= range.minProtocol && version <= range.maxProtocol);
}
