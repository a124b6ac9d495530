// What applications do with node-redis beyond plain commands: node node_redis_features.mjs PORT FEATURE... Prints a line
// of JSON, feature -> what it saw; a test compares that with the same against a plain server.
import { commandOptions, createClient } from "redis";

const [port, ...wanted] = process.argv.slice(2);
const client = createClient({ socket: { port: Number(port), host: "127.0.0.1", reconnectStrategy: false } });
client.on("error", (error) => {
  console.error(error.message);
  process.exit(1);
});
await client.connect();
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

const features = {
  async everyday() {
    const out = [];
    out.push(await client.set("{f}s", "v", { EX: 1000, NX: true }), await client.set("{f}s", "w", { NX: true }), await client.get("{f}s"));
    out.push(await client.zAdd("{f}z", [{ score: 1, value: "a" }, { score: 2.5, value: "b" }]), await client.zRangeWithScores("{f}z", 0, -1));
    out.push(await client.xAdd("{f}x", "1-1", { k: "v" }), await client.xRange("{f}x", "-", "+"));
    out.push(await client.hSet("{f}h", { a: 1, b: 2 }), await client.hmGet("{f}h", ["a", "none", "b"]));
    out.push(await client.geoAdd("{f}g", { longitude: 13.36, latitude: 38.11, member: "p" }), await client.geoPos("{f}g", "p"));
    out.push(await client.mSet({ m1: "1", m2: "2", m3: "3" }), await client.mGet(["m1", "m2", "m3", "m4"]), await client.del(["m1", "m2"]));
    out.push(await client.get(commandOptions({ returnBuffers: true }), "{f}s").then((b) => b.toString("hex")));
    out.push(await client.lPush("{f}s", "x").catch((error) => error.message));
    return out;
  },
  async transactions() {
    const out = [await client.multi().set("{f}k", "1").incr("{f}k").get("{f}k").exec()];
    out.push(await client.multi().set("{f}k", "x").incr("{f}k").exec().catch((error) => error.message));
    out.push(await client.executeIsolated(async (isolated) => {
      await isolated.watch("{f}k");
      await client.set("{f}k", "changed");
      return isolated.multi().set("{f}k", "mine").exec().catch((error) => error.constructor.name);
    }), await client.get("{f}k"));
    return out;
  },
  async scripts() {
    const sha = await client.scriptLoad("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    const call = (key, by) => client.evalSha(sha, { keys: [key], arguments: [by] });
    return [await call("{f}n", "5"), await call("{f}n", "6"), await call("{other}n", "7"), await call("{third}n", "8"),
      await client.eval("return {KEYS[1], ARGV[1], 3}", { keys: ["{f}k"], arguments: ["a"] }),
      await client.evalSha("0".repeat(40), { keys: ["{f}k"] }).catch((error) => error.message)];
  },
  async pubsub() {
    const subscriber = client.duplicate(), heard = [];
    await subscriber.connect();
    await subscriber.subscribe(["one", "two"], (message, channel) => heard.push([channel, message]));
    await subscriber.pSubscribe("thr*", (message, channel) => heard.push([channel, message]));
    const counts = [];
    for (const [channel, message] of [["one", "1"], ["two", "2"], ["three", "3"], ["four", "4"]]) {
      counts.push(await client.publish(channel, message));
      await wait(30);
    }
    await subscriber.unsubscribe("one");
    counts.push(await client.publish("one", "5"));
    await subscriber.disconnect();
    return [counts, heard];
  },
  async scan() {
    await client.mSet(Array.from({ length: 300 }, (_, i) => [`scan:${i}`, String(i)]));
    const keys = [];
    for await (const key of client.scanIterator({ MATCH: "scan:*", COUNT: 50 })) keys.push(key);
    await client.sAdd("{f}set", Array.from({ length: 600 }, (_, i) => String(i)));
    let members = 0;
    for await (const _ of client.sScanIterator("{f}set")) members += 1;
    return [keys.length, new Set(keys).size, members];
  },
  async blocking() {
    const popped = client.blPop(commandOptions({ isolated: true }), "{f}l", 5);
    await wait(50);
    await client.rPush("{f}l", ["a", "b"]);
    return [await popped, await client.blPop(commandOptions({ isolated: true }), "{f}l", 5),
      await client.blPop(commandOptions({ isolated: true }), "{f}l", 0.05)];
  },
};

const out = {};
for (const name of wanted) out[name] = await features[name]().catch((error) => `failed: ${error.message}`);
console.log(JSON.stringify(out));
await client.disconnect();
