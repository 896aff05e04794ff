// The scripted model server as a process: `node test/world/model-server-main.ts [PORT]` prints "listening <port>" and says pong.
import { startModelServer } from './model-server.ts';

const world = await startModelServer({ port: Number(process.argv[2] ?? 0), requestsMax: 50 });
console.log(`listening ${world.port}`);
