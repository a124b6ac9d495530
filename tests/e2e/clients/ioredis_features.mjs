// What applications do with ioredis beyond plain commands: node ioredis_features.mjs PORT FEATURE... Prints a line of
// JSON, feature -> what it saw; a test compares that with the same against a plain server.
import Redis from "ioredis";

const [port, ...wanted] = process.argv.slice(2);
const options = { port: Number(port), host: "127.0.0.1", maxRetriesPerRequest: 1, retryStrategy: () => null };
const redis = new Redis(options);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

const features = {
  async everyday() {
    const out = [];
    out.push(await redis.set("{f}s", "v", "EX", 1000, "NX"), await redis.set("{f}s", "w", "NX"), await redis.get("{f}s"));
    out.push(await redis.zadd("{f}z", 1, "a", 2.5, "b"), await redis.zrange("{f}z", 0, -1, "WITHSCORES"));
    out.push(await redis.xadd("{f}x", "1-1", "k", "v"), await redis.xrange("{f}x", "-", "+"));
    out.push(await redis.hset("{f}h", { a: 1, b: 2 }), await redis.hmget("{f}h", "a", "none", "b"));
    out.push(await redis.setbit("{f}b", 7, 1), await redis.bitcount("{f}b"), await redis.pfadd("{f}p", "x", "y"));
    out.push(await redis.mset("m1", 1, "m2", 2, "m3", 3), await redis.mget("m1", "m2", "m3", "m4"), await redis.del("m1", "m2", "m4"));
    out.push(await redis.lpush("{f}s", "x").catch((error) => error.message));
    return out;
  },
  async transactions() {
    const out = [];
    out.push(await redis.multi().set("{f}k", 1).incr("{f}k").lpush("{f}k", "x").get("{f}k").exec());
    await redis.watch("{f}k");
    const other = new Redis(options);
    await other.set("{f}k", 10);
    other.disconnect();
    out.push(await redis.multi().incr("{f}k").exec(), await redis.get("{f}k"));
    out.push(await redis.multi({ pipeline: false }), await redis.set("{f}k", 3), await redis.exec());
    return out.map((one) => JSON.parse(JSON.stringify(one, (_, v) => (v instanceof Error ? v.message : v))));
  },
  async scripts() {
    redis.defineCommand("addto", { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], ARGV[1])" });
    const out = [await redis.addto("{f}n", 5), await redis.addto("{f}n", 6), await redis.addto("{other}n", 7)];
    out.push(await redis.eval("return {KEYS[1], ARGV[1], 3}", 1, "{f}k", "a"));
    out.push(await redis.pipeline().addto("{f}n", 1).addto("{third}n", 2).exec());
    return out;
  },
  async pubsub() {
    const subscriber = new Redis(options), heard = [];
    subscriber.on("message", (channel, message) => heard.push([channel, message]));
    subscriber.on("pmessage", (pattern, channel, message) => heard.push([pattern, channel, message]));
    const counts = [await subscriber.subscribe("one", "two"), await subscriber.psubscribe("thr*")];
    for (const [channel, message] of [["one", "1"], ["two", "2"], ["three", "3"], ["four", "4"]]) {
      counts.push(await redis.publish(channel, message));
      await wait(30);
    }
    counts.push(await subscriber.unsubscribe("one"), await redis.publish("one", "5"));
    subscriber.disconnect();
    return [counts, heard];
  },
  async scan() {
    await redis.mset(Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`scan:${i}`, i])));
    const keys = [];
    for await (const part of redis.scanStream({ match: "scan:*", count: 50 })) keys.push(...part);
    await redis.sadd("{f}set", ...Array.from({ length: 600 }, (_, i) => i));
    let members = 0;
    for await (const part of redis.sscanStream("{f}set")) members += part.length;
    return [keys.length, new Set(keys).size, members];
  },
  async blocking() {
    const waiting = new Redis(options);
    const popped = waiting.blpop("{f}l", 5);
    await wait(50);
    await redis.rpush("{f}l", "a", "b");
    const out = [await popped, await waiting.brpop("{f}l", 5), await waiting.blpop("{f}l", 0.05)];
    waiting.disconnect();
    return out;
  },
};

const out = {};
for (const name of wanted) out[name] = await features[name]().catch((error) => `failed: ${error.message}`);
console.log(JSON.stringify(out));
redis.disconnect();
