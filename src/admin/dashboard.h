// The dashboard: the files that web/ builds and CMake embeds, as one handler of the admin listener.
//
// Invariant: a file's ETag is made from its bytes, so a browser never mixes the pages of two builds; nothing
// is cached without being asked for again. The page may load from this server alone (its content security
// policy says so). Threads: the server's. Cost: the embedded bytes are hashed once; a reply copies nothing
// but into the connection's buffer. Fails: 404 in words for what is not there.
#pragma once
#include "http/server.h"

namespace ringshift::admin {

// For GET of "/" and all below it that nobody else answers.
[[nodiscard]] http::Handler dashboard();

}  // namespace ringshift::admin
