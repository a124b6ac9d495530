// A user of the proxy, his rights, and what is refused to him.
import Redis from "ioredis";
const r = new Redis({port: Number(process.argv[2]), username: "al", password: "secret", retryStrategy: null});
await r.set("order:io", "7");
let refused = "";
try { await r.flushall(); } catch (error) { refused = error.message; }
console.log(JSON.stringify([await r.get("order:io"), await r.acl("whoami"), refused]));
r.disconnect();
