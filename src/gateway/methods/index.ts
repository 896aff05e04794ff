import type { MethodName } from '#protocol';
import { approvalMethods } from './approvals.ts';
import { chatMethods } from './chat.ts';
import type { MethodContext, Methods } from './method.ts';
import { overviewMethods } from './overview.ts';
import { sessionMethods } from './sessions.ts';

const ALL: Methods<MethodName> = { ...chatMethods, ...sessionMethods, ...approvalMethods, ...overviewMethods };

type AnyMethod = (params: unknown, context: MethodContext) => unknown;

/** Looked up by name in a map: what a client sends must not reach a prototype. */
export const methodTable: ReadonlyMap<string, AnyMethod> = new Map(Object.entries(ALL) as [string, AnyMethod][]);
export type { Caller, MethodContext } from './method.ts';
