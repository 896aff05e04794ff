import { GatewayError } from '#base';
import { type ConfigPath, formatConfigPath } from './config-path.ts';

/** Something about the config that its owner should know, with the place in the file. Holds no secret and no text of the file. */
export type Issue = {
  /** As `agents.list[0].id`; empty when it is about the whole file. */
  readonly path: string;
  readonly message: string;
  /** What to do, one sentence. */
  readonly next?: string;
  readonly file: string;
  /** From 1; absent when it is not about a place in a file. */
  readonly line?: number;
  readonly column?: number;
  /** What the owner asked for would expose the gateway: no start, also where a good copy exists. */
  readonly refusesStart?: true;
};

/** An issue before its place in a file is known. */
export type Fault = {
  readonly path: ConfigPath;
  readonly message: string;
  readonly next?: string;
  /** The key itself is meant, not its value. */
  readonly atKey?: true;
  readonly refusesStart?: true;
  /** Where the value came from, when it was not a file. */
  readonly from?: string;
};

export const faultPath = (fault: Fault): string => formatConfigPath(fault.path);

/** One line: `/home/…/reins.json:7:12 gateway.port must be … Do this.` */
export const formatIssue = (issue: Issue): string =>
  `${placed(issue)}${issue.next === undefined ? '' : `. ${issue.next}`}`;

function placed(issue: Issue): string {
  const place = issue.line === undefined ? issue.file : `${issue.file}:${issue.line}:${issue.column ?? 1}`;
  return `${place}${issue.path === '' ? '' : ` ${issue.path}`} ${issue.message}`;
}

/** The failure for a config that cannot be used; `detail.issues` holds all of it. `syntax`: it could not even be read. */
export function configError(issues: readonly Issue[], kind: 'syntax' | 'values'): GatewayError {
  const [first] = issues;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : '';
  return new GatewayError(
    kind === 'syntax' ? 'CONFIG_UNREADABLE' : 'CONFIG_INVALID',
    `The config cannot be used: ${first === undefined ? 'unknown reason' : placed(first)}${more}`,
    {
      next: first?.next ?? 'Correct the place it names; `reins config validate` shows everything that is wrong.',
      detail: { issues },
    },
  );
}
