/* tests/schedules/seams.h - the names that ditto calls, and that the engine has functions of its own for
 * (seams.c). The compiler includes this file before each file of ditto, so the sources stay as they are. */
#ifndef SCHEDULES_SEAMS_H
#define SCHEDULES_SEAMS_H

/* Otherwise the C library would give mmap another name, and the one below would not count. Offsets have 64
 * bits anyway. */
#undef _FILE_OFFSET_BITS

void seam_pause(void);
#define __builtin_ia32_pause seam_pause

#define pthread_create        seam_pthread_create
#define pthread_join          seam_pthread_join
#define pthread_detach        seam_pthread_detach
#define pthread_self          seam_pthread_self
#define pthread_getattr_np    seam_pthread_getattr_np
#define pthread_setname_np    seam_pthread_setname_np
#define pthread_mutex_init    seam_pthread_mutex_init
#define pthread_mutex_destroy seam_pthread_mutex_destroy
#define pthread_mutex_lock    seam_pthread_mutex_lock
#define pthread_mutex_trylock seam_pthread_mutex_trylock
#define pthread_mutex_unlock  seam_pthread_mutex_unlock
#define pthread_once          seam_pthread_once
#define pthread_key_create    seam_pthread_key_create
#define pthread_setspecific   seam_pthread_setspecific
#define pthread_getspecific   seam_pthread_getspecific
#define syscall               seam_syscall
#define clock_gettime         seam_clock_gettime
#define nanosleep             seam_nanosleep
#define getrusage             seam_getrusage
#define sched_yield           seam_sched_yield
#define sched_getcpu          seam_sched_getcpu
#define getcpu                seam_getcpu
#define sched_getaffinity     seam_sched_getaffinity
#define sched_setaffinity     seam_sched_setaffinity
#define mbind                 seam_mbind
#define move_pages            seam_move_pages
#define malloc                seam_malloc
#define calloc                seam_calloc
#define realloc               seam_realloc
#define aligned_alloc         seam_aligned_alloc
#define strdup                seam_strdup
#define free                  seam_free
#define mmap                  seam_mmap
#define munmap                seam_munmap
#define memcpy                seam_memcpy
#define memmove               seam_memmove
#define memset                seam_memset

#endif
