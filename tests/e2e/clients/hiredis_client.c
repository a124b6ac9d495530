// hiredis against a server: hiredis_client PORT. Prints what it saw, a line a step; a test compares that with the same
// against a plain server.
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show(const redisReply* reply) {
  if (reply == NULL) {
    printf("(lost)");
    return;
  }
  switch (reply->type) {
    case REDIS_REPLY_INTEGER:
      printf(":%lld", reply->integer);
      break;
    case REDIS_REPLY_NIL:
      printf("nil");
      break;
    case REDIS_REPLY_ARRAY:
      printf("[");
      for (size_t i = 0; i < reply->elements; ++i) {
        if (i > 0) printf(" ");
        show(reply->element[i]);
      }
      printf("]");
      break;
    default:
      printf("%d:", reply->type);
      for (size_t i = 0; i < reply->len; ++i) printf(" %02x", (unsigned char)reply->str[i]);
  }
}

static void done(redisReply* reply) {
  show(reply);
  printf("\n");
  if (reply == NULL) exit(1);
  freeReplyObject(reply);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const struct timeval patience = {5, 0};
  redisContext* c = redisConnectWithTimeout("127.0.0.1", atoi(arguments[1]), patience);
  if (c == NULL || c->err) return 1;
  redisSetTimeout(c, patience);
  redisEnableKeepAlive(c);

  done(redisCommand(c, "PING"));
  done(redisCommand(c, "SET %s %b", "hi:bytes", "a\0\r\nb", (size_t)5));
  done(redisCommand(c, "GET hi:bytes"));
  done(redisCommand(c, "GET hi:none"));
  done(redisCommand(c, "HSET hi:h f 1 g 2"));
  done(redisCommand(c, "HGETALL hi:h"));
  done(redisCommand(c, "INCR hi:h"));
  done(redisCommand(c, "MSET hi:1 a hi:2 b hi:3 c"));
  done(redisCommand(c, "MGET hi:1 hi:none hi:2 hi:3"));
  done(redisCommand(c, "NOSUCH thing"));
  done(redisCommand(c, "DEL hi:1 hi:2 hi:none"));

  // A pipeline: far more than one reply buffer.
  const int kSteps = 5000;
  for (int i = 0; i < kSteps; ++i) {
    redisAppendCommand(c, "SET hi:p%d %d", i % 100, i);
    redisAppendCommand(c, "GET hi:p%d", i % 100);
  }
  int right = 0;
  for (int i = 0; i < kSteps; ++i) {
    redisReply *set = NULL, *get = NULL;
    if (redisGetReply(c, (void**)&set) != REDIS_OK || redisGetReply(c, (void**)&get) != REDIS_OK) return 1;
    right += set->type == REDIS_REPLY_STATUS && get->type == REDIS_REPLY_STRING && atoi(get->str) == i;
    freeReplyObject(set);
    freeReplyObject(get);
  }
  printf("%d of %d right\n", right, kSteps);

  // A megabyte.
  const size_t size = 1 << 20;
  char* big = malloc(size);
  memset(big, 'x', size);
  done(redisCommand(c, "SET hi:big %b", big, size));
  done(redisCommand(c, "STRLEN hi:big"));
  redisReply* got = redisCommand(c, "GET hi:big");
  printf("%s\n", got != NULL && got->len == size && memcmp(got->str, big, size) == 0 ? "the same" : "another");
  freeReplyObject(got);
  free(big);

  if (redisReconnect(c) != REDIS_OK) return 1;
  done(redisCommand(c, "EXISTS hi:big hi:none"));
  redisFree(c);
  return 0;
}
