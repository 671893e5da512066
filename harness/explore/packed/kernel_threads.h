/* Batches of states that several threads look up side by side, as far as the tables go, for one that takes them in turn.

   A batch's states are copied: those of the kernel may move while they are looked up. Nobody may change the tables
   between `batch_begin` and `batch_end`. The one that takes them helps, and waits for no thread that has not begun. */

#ifndef KERNEL_THREADS_H
#define KERNEL_THREADS_H

#include <pthread.h>
#include <stdatomic.h>

#include "kernel_look.h"

#define STRIDE 64               /* states that a thread takes at a time */

typedef struct { int code; u32 who, met, met_end, after, after_end; } Found;
typedef struct {
    u64 first, count;           /* numbers of the states */
    _Atomic u64 taken, done;
    u32 inside;                 /* threads that look at it */
    Looker lookers[MOST_THREADS];
    Bits states[MOST_OF_BATCH];
    Found found[MOST_OF_BATCH];
} Batch;
typedef struct { struct Pool *pool; u32 who; } Share;
typedef struct Pool {
    Kernel *k;
    pthread_mutex_t lock;
    pthread_cond_t wakes, rests;
    Batch *batch[2];            /* the one at hand, and the next */
    Batch *given;
    u64 turn;                   /* how often a batch was given */
    int quits;
    u32 running;
    Share shares[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
} Pool;

static void batch_work(Pool *pool, Batch *batch, u32 who)
{
    Looker *l = &batch->lookers[who];
    u64 from;
    while ((from = atomic_fetch_add(&batch->taken, STRIDE)) < batch->count) {
        u64 end = from + STRIDE < batch->count ? from + STRIDE : batch->count;
        for (u64 i = from; i < end; i++) {
            u64 met = l->met.count, after = l->after.count;
            int code = look(pool->k, l, batch->states[i]);
            if (code) { l->met.count = met; l->after.count = after; }
            batch->found[i] = (Found){ code, who, (u32)met, (u32)l->met.count, (u32)after, (u32)l->after.count };
        }
        if (atomic_fetch_add(&batch->done, end - from) + end - from == batch->count) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_broadcast(&pool->rests);
            pthread_mutex_unlock(&pool->lock);
        }
    }
}

static void *pool_work(void *given)
{
    Share *share = given;
    Pool *pool = share->pool;
    u64 seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->quits && pool->turn == seen) pthread_cond_wait(&pool->wakes, &pool->lock);
        if (pool->quits) break;
        seen = pool->turn;
        Batch *batch = pool->given;
        batch->inside++;
        pthread_mutex_unlock(&pool->lock);
        batch_work(pool, batch, share->who);
        pthread_mutex_lock(&pool->lock);
        if (!--batch->inside) pthread_cond_broadcast(&pool->rests);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void batch_begin(Pool *pool, Batch *batch, u64 first, u64 end)
{
    Kernel *k = pool->k;
    pthread_mutex_lock(&pool->lock);
    while (batch->inside) pthread_cond_wait(&pool->rests, &pool->lock);
    batch->first = first;
    batch->count = end - first < k->size_of_batch ? end - first : k->size_of_batch;
    memcpy(batch->states, k->states.at + first, batch->count * sizeof(Bits));
    for (u32 who = 0; who < k->threads; who++) batch->lookers[who].met.count = batch->lookers[who].after.count = 0;
    atomic_store(&batch->done, 0);
    atomic_store(&batch->taken, 0);
    pool->given = batch;
    pool->turn++;
    pthread_cond_broadcast(&pool->wakes);
    pthread_mutex_unlock(&pool->lock);
}

/* Help with a batch until it is done. */
static void batch_end(Pool *pool, Batch *batch)
{
    batch_work(pool, batch, 0);
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&batch->done) < batch->count) pthread_cond_wait(&pool->rests, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

/* Leave a batch as it is: nobody wants it any more. Who comes later finds it taken. */
static void batch_drop(Pool *pool, Batch *batch)
{
    atomic_store(&batch->taken, batch->count);
    pthread_mutex_lock(&pool->lock);
    while (batch->inside) pthread_cond_wait(&pool->rests, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void pool_free(Pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->quits = 1;
    pthread_cond_broadcast(&pool->wakes);
    pthread_mutex_unlock(&pool->lock);
    while (pool->running) pthread_join(pool->threads[--pool->running], NULL);
    for (int n = 0; n < 2; n++) {
        for (u32 who = 0; pool->batch[n] && who < MOST_THREADS; who++) looker_free(&pool->batch[n]->lookers[who]);
        free(pool->batch[n]);
    }
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
    for (int n = 0; n < 2; n++)
        if (!(pool->batch[n] = calloc(1, sizeof(Batch)))) { pool_free(pool); return NULL; }
    for (u32 n = 0; n + 1 < k->threads; n++) {
        pool->shares[n] = (Share){ pool, n + 1 };
        if (pthread_create(&pool->threads[n], NULL, pool_work, &pool->shares[n])) break;
        pool->running++;
    }
    return pool;
}

#endif
