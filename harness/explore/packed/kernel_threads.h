/* Batches of states that several threads look up side by side, as far as the tables go, for one that takes them in turn.

   A batch's states are copied: those of the kernel may move while they are looked up. Nobody may change the tables
   between `batch_begin` and `batch_end`. The one that takes them helps, and waits for no thread that has not begun.
   Threads count what they look up, and leave out the successors that they found a short time ago. */

#ifndef KERNEL_THREADS_H
#define KERNEL_THREADS_H

#include <pthread.h>
#include <stdatomic.h>

#include "kernel_look.h"

#define STRIDE 64               /* states that a thread takes at a time */
#define SPINS 20000             /* looks at whether others are done before a thread sleeps: to wake one takes longer */
#define DEPTH 4                 /* batches that are begun before the first of them is taken, at most */

static inline void pause_a_little(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

typedef struct {
    u64 count;                  /* of the states */
    _Atomic u64 taken, done;
    u32 inside;                 /* threads that look at it */
    Looker lookers[MOST_THREADS];
    Bits states[MOST_OF_BATCH];
    Found found[MOST_OF_BATCH];
} Batch;
typedef struct { struct Pool *pool; u32 who; int ready; ARRAY(u64) hits; u64 generated; Recent recent[RECENT]; } Share;
typedef struct Pool {
    Kernel *k;
    pthread_mutex_t lock;
    pthread_cond_t wakes, rests;
    Batch *batches[DEPTH];
    _Atomic u64 begun;          /* how many batches were */
    u64 over;                   /* how many of them were taken: those between are looked up, or wait for it */
    int quits;
    u32 running;
    Share shares[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
} Pool;

static void batch_work(Pool *pool, Batch *batch, u32 who)
{
    Kernel *k = pool->k;
    Looker *l = &batch->lookers[who];
    Share *share = &pool->shares[who];
    u64 from;
    while ((from = atomic_fetch_add(&batch->taken, STRIDE)) < batch->count) {
        u64 end = from + STRIDE < batch->count ? from + STRIDE : batch->count;
        for (u64 i = from; i < end; i++) {
            u64 met = l->met.count, after = l->after.count;
            int code = share->ready ? look(k, l, batch->states[i]) : NO_MEMORY;
            if (code) { l->met.count = met; l->after.count = after; }
            Found *found = &batch->found[i];
            *found = (Found){ code, 0, 0, who, (u32)met, (u32)l->met.count, (u32)after, (u32)l->after.count };
            count_found(k, share->hits.at, &share->generated, l, found, 1);
        }
        if (atomic_fetch_add(&batch->done, end - from) + end - from == batch->count) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_broadcast(&pool->rests);
            pthread_mutex_unlock(&pool->lock);
        }
    }
}

static inline Batch *batch_of(const Pool *pool, u64 number) { return pool->batches[number % DEPTH]; }

static void *pool_work(void *given)
{
    Share *share = given;
    Pool *pool = share->pool;
    u64 next = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->quits && pool->begun == next) pthread_cond_wait(&pool->wakes, &pool->lock);
        if (pool->quits) break;
        if (pool->begun - next > DEPTH) next = pool->begun - DEPTH;
        Batch *batch = batch_of(pool, next++);
        batch->inside++;
        pthread_mutex_unlock(&pool->lock);
        batch_work(pool, batch, share->who);
        pthread_mutex_lock(&pool->lock);
        if (!--batch->inside) pthread_cond_broadcast(&pool->rests);
        pthread_mutex_unlock(&pool->lock);
        for (int n = 0; n < SPINS && atomic_load(&pool->begun) == next; n++) pause_a_little();
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Begin the next batch: states from `first` on, but none from `end` on. Return how many they are. */
static u64 batch_begin(Pool *pool, u64 first, u64 end)
{
    Kernel *k = pool->k;
    Batch *batch = batch_of(pool, pool->begun);
    pthread_mutex_lock(&pool->lock);
    while (batch->inside) pthread_cond_wait(&pool->rests, &pool->lock);
    batch->count = end - first < k->size_of_batch ? end - first : k->size_of_batch;
    memcpy(batch->states, k->states.at + first, batch->count * sizeof(Bits));
    for (u32 who = 0; who < k->threads; who++) batch->lookers[who].met.count = batch->lookers[who].after.count = 0;
    atomic_store(&batch->done, 0);
    atomic_store(&batch->taken, 0);
    pool->begun++;
    pthread_cond_broadcast(&pool->wakes);
    pthread_mutex_unlock(&pool->lock);
    return batch->count;
}

/* Help with a batch until it is done. */
static void batch_end(Pool *pool, Batch *batch)
{
    batch_work(pool, batch, 0);
    for (int n = 0; n < SPINS && atomic_load(&batch->done) < batch->count; n++) pause_a_little();
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&batch->done) < batch->count) pthread_cond_wait(&pool->rests, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

/* Help with all batches until nobody looks at the tables. */
static void pool_rest(Pool *pool)
{
    for (u64 n = pool->over; n < pool->begun; n++) batch_end(pool, batch_of(pool, n));
}

/* Take back the counts of a batch's states. */
static void batch_uncount(Pool *pool, Batch *batch)
{
    for (u64 i = 0; i < batch->count; i++) {
        Found *found = &batch->found[i];
        Share *share = &pool->shares[found->who];
        count_found(pool->k, share->hits.at, &share->generated, &batch->lookers[found->who], found, -1);
    }
}

/* Leave the batches that nobody has taken as if they had not been begun. */
static void pool_drop(Pool *pool)
{
    pool_rest(pool);
    for (; pool->over < pool->begun; pool->over++) batch_uncount(pool, batch_of(pool, pool->over));
}

/* Room for the threads' counts of all entries that there are now; a thread that has none looks nothing up. */
static void pool_room(Pool *pool)
{
    Kernel *k = pool->k;
    for (u32 who = 0; who < k->threads; who++) {
        Share *share = &pool->shares[who];
        u64 more = k->hits.count - share->hits.count;
        share->ready = !ROOM(share->hits, more);
        if (!share->ready || !more) continue;
        memset(share->hits.at + share->hits.count, 0, more * sizeof(u64));
        share->hits.count += more;
    }
}

static u64 pool_generated(const Kernel *k)
{
    u64 sum = 0;
    for (u32 who = 0; k->pool && who < k->threads; who++) sum += k->pool->shares[who].generated;
    return sum;
}

/* Move the hits that threads counted to the kernel's own. */
static void pool_hits(Kernel *k)
{
    for (u32 who = 0; k->pool && who < k->threads; who++) {
        Share *share = &k->pool->shares[who];
        for (u64 n = 0; n < share->hits.count; n++) k->hits.at[n] += share->hits.at[n];
        share->hits.count = 0;
    }
}

static void pool_free(Pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->quits = 1;
    pthread_cond_broadcast(&pool->wakes);
    pthread_mutex_unlock(&pool->lock);
    while (pool->running) pthread_join(pool->threads[--pool->running], NULL);
    for (u32 who = 0; who < MOST_THREADS; who++) free(pool->shares[who].hits.at);
    for (u64 n = 0; n < DEPTH; n++) {
        for (u32 who = 0; pool->batches[n] && who < MOST_THREADS; who++) looker_free(&pool->batches[n]->lookers[who]);
        free(pool->batches[n]);
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
    for (u64 n = 0; n < DEPTH; n++) {
        if (!(pool->batches[n] = calloc(1, sizeof(Batch)))) { pool_free(pool); return NULL; }
        for (u32 who = 0; who < k->threads; who++) pool->batches[n]->lookers[who].recent = pool->shares[who].recent;
    }
    for (u32 n = 0; n + 1 < k->threads; n++) {
        pool->shares[n + 1].pool = pool;
        pool->shares[n + 1].who = n + 1;
        if (pthread_create(&pool->threads[n], NULL, pool_work, &pool->shares[n + 1])) break;
        pool->running++;
    }
    return pool;
}

#endif
