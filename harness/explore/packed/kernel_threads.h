/* Batches of states that several threads look up side by side, as far as the tables go, for one that takes them in turn.

   A batch's states are copied: those of the kernel may move while they are looked up. Nobody may change the tables
   between `batch_begin` and `batch_end`. */

#ifndef KERNEL_THREADS_H
#define KERNEL_THREADS_H

#ifndef _WIN32
#include <pthread.h>
#endif
#include <stdatomic.h>

#include "kernel_look.h"

#define STRIDE 64               /* states that a thread takes at a time */

typedef struct { int code; u32 who, met, met_end, after, after_end; } Found;
typedef struct { Kernel *k; struct Batch *batch; u32 who; } Share;
typedef struct Batch {
    u64 first, count;           /* numbers of the states */
    _Atomic u64 taken;
    u32 running;
    Looker lookers[MOST_THREADS];
    Share shares[MOST_THREADS];
#ifndef _WIN32
    pthread_t threads[MOST_THREADS];
#endif
    Bits states[MOST_OF_BATCH];
    Found found[MOST_OF_BATCH];
} Batch;

static void *batch_work(void *given)
{
    Share *share = given;
    Batch *batch = share->batch;
    Looker *l = &batch->lookers[share->who];
    u64 from;
    while ((from = atomic_fetch_add(&batch->taken, STRIDE)) < batch->count) {
        u64 end = from + STRIDE < batch->count ? from + STRIDE : batch->count;
        for (u64 i = from; i < end; i++) {
            u64 met = l->met.count, after = l->after.count;
            int code = look(share->k, l, batch->states[i]);
            if (code) { l->met.count = met; l->after.count = after; }
            batch->found[i] = (Found){ code, share->who, (u32)met, (u32)l->met.count, (u32)after, (u32)l->after.count };
        }
    }
    return NULL;
}

static void batch_begin(Kernel *k, Batch *batch, u64 first, u64 end)
{
    batch->first = first;
    batch->count = end - first < k->size_of_batch ? end - first : k->size_of_batch;
    memcpy(batch->states, k->states.at + first, batch->count * sizeof(Bits));
    atomic_store(&batch->taken, 0);
    for (u32 who = 0; who < k->threads; who++) {
        batch->lookers[who].met.count = batch->lookers[who].after.count = 0;
        batch->shares[who] = (Share){ k, batch, who };
    }
    batch->running = 1;
#ifndef _WIN32
    while (batch->running < k->threads
           && !pthread_create(&batch->threads[batch->running], NULL, batch_work, &batch->shares[batch->running]))
        batch->running++;
#endif
}

/* Help with a batch until it is done. */
static void batch_end(Batch *batch)
{
    batch_work(&batch->shares[0]);
#ifndef _WIN32
    while (batch->running > 1) pthread_join(batch->threads[--batch->running], NULL);
#endif
}

/* Leave a batch as it is: nobody wants it any more. */
static void batch_drop(Batch *batch)
{
    atomic_store(&batch->taken, batch->count);
    batch_end(batch);
}

static Batch *batch_new(void) { return calloc(1, sizeof(Batch)); }

static void batch_free(Batch *batch)
{
    for (u32 who = 0; batch && who < MOST_THREADS; who++) looker_free(&batch->lookers[who]);
    free(batch);
}

#endif
