import type { AgentSettings } from '#config';
import type { AgentRunSettings } from '#dispatch';
import { allowedTools } from '#policy';

/** Turns in a row that ask for exactly the same calls before a run is ended. */
const IDENTICAL_TURNS_MAX = 5;

/** An agent of the config as a run needs it. */
export function runSettings(agent: AgentSettings): AgentRunSettings {
  const { primary } = agent.model;
  return {
    agent: agent.id,
    name: agent.name,
    workspace: agent.workspace,
    ...(primary === undefined ? {} : { model: primary }),
    ...(agent.provider === undefined ? {} : { provider: agent.provider }),
    ...(agent.thinking === undefined ? {} : { thinking: agent.thinking }),
    exchanges: agent.memory.shortTermTurns,
    ...(agent.contextWindow === undefined ? {} : { contextWindow: agent.contextWindow }),
    limits: { turns: agent.maxTurns, identicalTurns: IDENTICAL_TURNS_MAX },
    bound: { tokensMax: agent.maxToolResultTokens, truncationMessage: agent.truncationMessage },
    timeoutMs: agent.timeoutMs,
    systemExtra: agent.systemPromptExtra,
    toolsFor: (tools, { sender }) => allowedTools(tools, agent.toolRules, { owner: sender.owner }),
  };
}
