import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { ChatStore } from '../state/chat-store.ts';

export const StoreContext = createContext<ChatStore | undefined>(undefined);

export function useStore(): ChatStore {
  const store = useContext(StoreContext);
  if (!store) throw new Error('a view of the chat is shown outside the chat');
  return store;
}
