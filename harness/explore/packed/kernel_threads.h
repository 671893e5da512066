/* Threads that do pieces of one task side by side, for the one that asks. It helps, and waits for no thread that has
   not begun: where the others have no processor it does all of it alone. */

#ifndef KERNEL_THREADS_H
#define KERNEL_THREADS_H

#include <pthread.h>
#include <stdatomic.h>

#include "kernel_tables.h"

#define SPINS 20000             /* looks at whether there is a task, or others are done, before a thread sleeps */

static inline void pause_a_little(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

struct Pool;
typedef void (*Task)(Kernel *k, u32 who);   /* takes pieces until there are none */
typedef struct { struct Pool *pool; u32 who; } Thread;
typedef struct Pool {
    Kernel *k;
    Task task;
    _Atomic u64 turn;           /* odd while a task may be begun */
    _Atomic u32 inside;         /* threads that look at the task */
    _Atomic u32 asleep;
    int quits;
    pthread_mutex_t lock;
    pthread_cond_t wakes, rests;
    u32 running;
    Thread threads[MOST_THREADS];
    pthread_t handles[MOST_THREADS];
} Pool;

static void *pool_work(void *given)
{
    Thread *self = given;
    Pool *pool = self->pool;
    for (u64 done = 0;;) {
        u64 turn = atomic_load(&pool->turn);
        for (int n = 0; n < SPINS && (turn == done || !(turn & 1)); n++) {
            pause_a_little();
            turn = atomic_load(&pool->turn);
        }
        if (turn == done || !(turn & 1)) {
            pthread_mutex_lock(&pool->lock);
            atomic_fetch_add(&pool->asleep, 1);
            while (!pool->quits && ((turn = atomic_load(&pool->turn)) == done || !(turn & 1)))
                pthread_cond_wait(&pool->wakes, &pool->lock);
            atomic_fetch_sub(&pool->asleep, 1);
            int quits = pool->quits;
            pthread_mutex_unlock(&pool->lock);
            if (quits) return NULL;
        }
        atomic_fetch_add(&pool->inside, 1);
        if (atomic_load(&pool->turn) == turn) pool->task(pool->k, self->who);
        done = turn;
        if (atomic_fetch_sub(&pool->inside, 1) == 1) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->rests);
            pthread_mutex_unlock(&pool->lock);
        }
    }
}

/* Do a task with all threads that come to it in time. */
static void pool_run(Pool *pool, Task task)
{
    pool->task = task;
    atomic_fetch_add(&pool->turn, 1);
    if (atomic_load(&pool->asleep)) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->wakes);
        pthread_mutex_unlock(&pool->lock);
    }
    task(pool->k, 0);
    atomic_fetch_add(&pool->turn, 1);
    for (int n = 0; n < SPINS && atomic_load(&pool->inside); n++) pause_a_little();
    if (!atomic_load(&pool->inside)) return;
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&pool->inside)) pthread_cond_wait(&pool->rests, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void pool_free(Pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->quits = 1;
    pthread_cond_broadcast(&pool->wakes);
    pthread_mutex_unlock(&pool->lock);
    while (pool->running) pthread_join(pool->handles[--pool->running], NULL);
    free(pool);
}

/* Start threads besides the one that calls; with fewer than asked for it is slower, no more. */
static Pool *pool_new(Kernel *k)
{
    Pool *pool = calloc(1, sizeof(Pool));
    if (!pool) return NULL;
    pool->k = k;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wakes, NULL);
    pthread_cond_init(&pool->rests, NULL);
    for (u32 n = 0; n + 1 < k->threads; n++) {
        pool->threads[n] = (Thread){ pool, n + 1 };
        if (pthread_create(&pool->handles[n], NULL, pool_work, &pool->threads[n])) break;
        pool->running++;
    }
    return pool;
}

#endif
