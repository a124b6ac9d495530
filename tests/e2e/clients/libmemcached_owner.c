/* Which server libmemcached chooses for a key: the real library, asked without any network.
 *
 * Standard input, a line each:   case DISTRIBUTION HASH          numbers of libmemcached's own enums
 *                                server HOST PORT WEIGHT         port 0: HOST is the path of a Unix socket
 *                                key HEX                         ("key" alone: the empty key)
 * A case ends at the next one. Standard output: a line a case, the servers' indices in the keys' order. */
#include <libmemcached-1.0/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static memcached_st *current;
static int answered;

static void fail(const char *what) {
  fprintf(stderr, "libmemcached_owner: %s\n", what);
  exit(1);
}

static void check(memcached_return_t rc) {
  if (rc != MEMCACHED_SUCCESS) fail(memcached_strerror(current, rc));
}

static void end_case(void) {
  if (current == NULL) return;
  puts("");
  memcached_free(current);
  current = NULL;
}

static void begin_case(int distribution, int hash) {
  end_case();
  current = memcached_create(NULL);
  answered = 0;
  if (distribution == MEMCACHED_DISTRIBUTION_CONSISTENT_WEIGHTED) {
    check(memcached_behavior_set(current, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1));
    return;
  }
  check(memcached_behavior_set(current, MEMCACHED_BEHAVIOR_HASH, (uint64_t)hash));
  check(memcached_behavior_set_distribution(current, (memcached_server_distribution_t)distribution));
}

static void answer(const char *hex) {
  char key[1024];
  size_t size = strlen(hex) / 2;
  if (size > sizeof key) fail("a key is too long");
  for (size_t i = 0; i < size; ++i) {
    unsigned byte;
    if (sscanf(hex + 2 * i, "%2x", &byte) != 1) fail("a key is not hex");
    key[i] = (char)byte;
  }
  printf("%s%u", answered++ ? " " : "", memcached_generate_hash(current, key, size));
}

int main(void) {
  char line[4096], host[1024], hex[2048];
  int distribution, hash, port, weight;
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (sscanf(line, "case %d %d", &distribution, &hash) == 2) {
      begin_case(distribution, hash);
    } else if (sscanf(line, "server %1023s %d %d", host, &port, &weight) == 3) {
      check(port == 0 ? memcached_server_add_unix_socket_with_weight(current, host, (uint32_t)weight)
                      : memcached_server_add_with_weight(current, host, (in_port_t)port, (uint32_t)weight));
    } else if (sscanf(line, "key %2047s", hex) == 1) {
      answer(hex);
    } else {
      answer("");
    }
  }
  end_case();
  return 0;
}
