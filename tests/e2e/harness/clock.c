// Preloaded into a program, makes its clock of the day jump: by the seconds that stand in the file RS_CLOCK (an
// int64_t), which may change at any time. The monotonic clock stays as it is.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* jump;

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("RS_CLOCK");
  const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* const page = mmap(NULL, sizeof *jump, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (page != MAP_FAILED) jump = page;
}

int clock_gettime(clockid_t id, struct timespec* t) {
  const long done = syscall(SYS_clock_gettime, id, t);
  if (done == 0 && jump != NULL && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += *jump;
  return (int)done;
}

int gettimeofday(struct timeval* restrict t, void* restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
