// node-redis against a proxy: node node_redis.mjs PORT. Prints what it saw as one line of JSON.
import { createClient } from "redis";

const port = Number(process.argv[2]);
const client = createClient({ socket: { port, host: "127.0.0.1", reconnectStrategy: false } });
client.on("error", (error) => {
  console.error(error.message);
  process.exit(1);
});
await client.connect();
const out = {};

out.ping = await client.ping();
out.set = await client.set("nr:a", "1", { PX: 60000 });
out.get = await client.get("nr:a");
const ttl = await client.pTTL("nr:a");
out.ttl = ttl > 50000 && ttl <= 60000;
out.missing = await client.get("nr:none");
out.incr = await client.incrBy("nr:n", 5);
await client.hSet("nr:h", { f: "x", g: "y" });
out.hgetall = { ...(await client.hGetAll("nr:h")) };
await client.rPush("nr:l", ["a", "b", "c"]);
out.list = await client.lRange("nr:l", 0, -1);
await client.zAdd("nr:z", [{ score: 1.5, value: "m" }]);
out.zscore = await client.zScore("nr:z", "m");
out.mset = await client.mSet(Array.from({ length: 100 }, (_, i) => [`nr:m${i}`, `v${i}`]));
out.mget = await client.mGet(Array.from({ length: 101 }, (_, i) => `nr:m${i}`));
out.del = await client.del(Array.from({ length: 50 }, (_, i) => `nr:m${i}`));
out.unknown = await client.sendCommand(["NOSUCHCOMMAND"]).then(() => "answered", (error) => error.message);
// Sent in one turn of the event loop: node-redis pipelines these.
out.parallel = (await Promise.all(Array.from({ length: 2000 }, (_, i) => client.set(`nr:q${i % 100}`, String(i))))).filter((x) => x === "OK").length;
out.last = await client.get("nr:q99");
await client.quit();
console.log(JSON.stringify(out));
