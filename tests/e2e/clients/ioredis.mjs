// ioredis against a proxy: node ioredis.mjs PORT. Prints what it saw as one line of JSON.
import Redis from "ioredis";

const port = Number(process.argv[2]);
const redis = new Redis({ port, host: "127.0.0.1", maxRetriesPerRequest: 1, retryStrategy: () => null });
const out = {};

out.ping = await redis.ping();
out.set = await redis.set("io:a", "1");
out.get = await redis.get("io:a");
out.missing = await redis.get("io:none");
out.incr = await redis.incr("io:n");
await redis.hset("io:h", { f: "x", g: "y" });
out.hgetall = await redis.hgetall("io:h");
out.mset = await redis.mset(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`io:m${i}`, `v${i}`])));
out.mget = await redis.mget(Array.from({ length: 101 }, (_, i) => `io:m${i}`));
out.del = await redis.del(Array.from({ length: 50 }, (_, i) => `io:m${i}`));
const pipeline = redis.pipeline();
for (let i = 0; i < 500; i++) pipeline.set(`io:p${i}`, i).get(`io:p${i}`);
out.pipeline = (await pipeline.exec()).filter(([error, value], i) => error === null && (i % 2 === 0 || value === String((i - 1) / 2))).length;
const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
await redis.set(bytes, bytes);
out.binary = (await redis.getBuffer(bytes)).equals(bytes);
out.unknown = await redis.call("NOSUCHCOMMAND").then(() => "answered", (error) => error.message);
out.alive = await redis.get("io:a");
// Many requests in flight at once, as an application has them.
out.parallel = (await Promise.all(Array.from({ length: 2000 }, (_, i) => redis.set(`io:q${i % 100}`, i)))).filter((x) => x === "OK").length;
await redis.quit();
console.log(JSON.stringify(out));
