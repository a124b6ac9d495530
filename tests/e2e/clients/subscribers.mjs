// Subscribers on ioredis and node-redis: node subscribers.mjs PORT CHANNELS. Each has all channels, and a pattern
// for them on a second connection. Prints "ready" and then, when standard input closes, what each heard: name ->
// texts. A connection that breaks is an error: none may.
import Redis from "ioredis";
import { createClient } from "redis";

const [port, count] = process.argv.slice(2).map(Number);
const channels = Array.from({ length: count }, (_, i) => `live:${i}`);
const heard = { ioredis: [], ioredis_pattern: [], node_redis: [], node_redis_pattern: [] };
const broke = (name) => () => { console.error(`${name} broke`); process.exit(1); };

for (const name of ["ioredis", "ioredis_pattern"]) {
  const client = new Redis({ port, host: "127.0.0.1", retryStrategy: null });
  client.on("error", broke(name));
  if (name === "ioredis") {
    client.on("message", (_, text) => heard[name].push(text));
    await client.subscribe(...channels);
  } else {
    client.on("pmessage", (_, channel, text) => heard[name].push(text));
    await client.psubscribe("live:*");
  }
  client.on("close", broke(name));
}
for (const name of ["node_redis", "node_redis_pattern"]) {
  const client = createClient({ socket: { port, host: "127.0.0.1", reconnectStrategy: false } });
  client.on("error", broke(name));
  await client.connect();
  if (name === "node_redis") await client.subscribe(channels, (text) => heard[name].push(text));
  else await client.pSubscribe("live:*", (text) => heard[name].push(text));
}
console.log("ready");
process.stdin.on("end", () => { process.stdout.write(JSON.stringify(heard) + "\n", () => process.exit(0)); }).resume();
