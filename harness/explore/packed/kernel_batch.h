/* A batch of states, expanded in steps that threads share: each state is looked up; each shard of the seen states takes
   its own of the successors, in the order of the batch, and marks the new ones; marks are counted, which gives each new
   state its number. So what is first, and every number, is as if one thread had gone from state to state.

   Until a new state has its number, it stands behind those that are kept, with others of its shard. The last batch's
   new states get theirs while the next one is looked up. Nobody may change the tables meanwhile. */

#ifndef KERNEL_BATCH_H
#define KERNEL_BATCH_H

#include "kernel_look.h"
#include "kernel_seen.h"
#include "kernel_threads.h"

#define FEW 20                  /* one in so many states may lack something: else threads do not pay */
#define STRIDE 64               /* states that a thread takes at a time */

typedef struct {
    u64 first, count;           /* its states */
    u64 base, total;            /* how many states were kept before; how many successors there are */
    Looker lookers[MOST_THREADS + 1];   /* of threads; and the one that asks */
    uint8_t who[MOST_OF_BATCH]; /* has looked a state up */
    u32 place[MOST_OF_BATCH];   /* of a state's first successor among all, at first how many it has */
    Found found[MOST_OF_BATCH];
} Batch;
typedef struct { int fails; ARRAY(u64) hits; u64 generated; char apart[APART]; } Share;
/* Fields that move by the same number of bits. */
typedef struct { Bits mask; int up; } Move;
typedef struct { Move *at; u64 count; } Moves;
typedef struct Work {
    Pool *pool;                 /* of threads, once there are any */
    Batch batches[2];
    Batch *now, *last;          /* the last one, while its new states have no numbers yet */
    _Atomic u64 states, shards, settled;    /* how many pieces of a task are taken */
    const Moves *moves;         /* of states that are packed anew */
    Share shares[MOST_THREADS + 1];
} Work;

static void settle(Kernel *k, const Batch *batch, Shard *shard)
{
    u64 word = 0, before = 0, marks = 0;
    for (u32 s = 0; s < k->threads; s++) marks |= k->shards[s].marks.at[0];
    for (u64 i = 0; i < shard->fresh.count; i++) {
        const Fresh *fresh = &shard->fresh.at[i];
        while (fresh->place >> 6 > word) {
            before += (u64)__builtin_popcountll(marks);
            word++;
            marks = 0;
            for (u32 s = 0; s < k->threads; s++) marks |= k->shards[s].marks.at[word];
        }
        u64 earlier = marks & ((1ull << (fresh->place & 63)) - 1);
        u64 number = batch->base + before + (u64)__builtin_popcountll(earlier);
        k->states.at[number] = fresh->found->after;
        shard->seen[fresh->at] = seen_entry(k, rest_of(k, fresh->found->hash), number);
    }
}

static void settle_task(Kernel *k, u32 who)
{
    (void)who;
    u64 s;
    while (k->work->last && (s = atomic_fetch_add(&k->work->settled, 1)) < k->threads)
        settle(k, k->work->last, &k->shards[s]);
}

/* The counts of a looker: its thread's own, or the kernel's. */
static inline u64 *hits_of(Kernel *k, u32 who)
{
    return who && who < k->threads ? k->work->shares[who].hits.at : k->hits.at;
}

static inline u64 *generated_of(Kernel *k, u32 who)
{
    return who && who < k->threads ? &k->work->shares[who].generated : &k->generated;
}

/* Look up one state of a batch, and count what is found. */
static int find(Kernel *k, Batch *batch, u64 i, u32 who)
{
    Looker *l = &batch->lookers[who];
    u64 met = l->met.count;
    u32 count = 0;
    int code = k->work->shares[who].fails ? NO_MEMORY : look(k, l, k->states.at[batch->first + i], (u32)i, &count);
    if (code) look_back(l, met, (u32)i);
    l->lacks |= code;
    Found *found = &batch->found[i];
    *found = (Found){ code, 0, 0, (u32)met, (u32)l->met.count };
    batch->who[i] = (uint8_t)who;
    batch->place[i] = count;
    count_found(k, hits_of(k, who), generated_of(k, who), l, found, 1);
    l->says |= (!code && (found->answers || (!found->leads && k->deadlocks))) || l->outside.count;
    return code;
}

static void find_task(Kernel *k, u32 who)
{
    Batch *batch = k->work->now;
    settle_task(k, who);
    u64 from;
    while ((from = atomic_fetch_add(&k->work->states, STRIDE)) < batch->count) {
        u64 end = from + STRIDE < batch->count ? from + STRIDE : batch->count;
        for (u64 i = from; i < end; i++) find(k, batch, i, who);
    }
}

/* How many successors of a batch, at most, a shard will be looked at for. */
static u64 entering(const Kernel *k, const Batch *batch, u64 shard)
{
    u64 count = 0;
    for (u32 who = 0; who <= k->threads; who++) count += batch->lookers[who].after[shard].count;
    return count;
}

static void grow_task(Kernel *k, u32 who)
{
    (void)who;
    u64 s;
    while ((s = atomic_fetch_add(&k->work->shards, 1)) < k->threads)
        while (is_short(&k->shards[s], entering(k, k->work->now, s)) && !k->shards[s].failed)
            k->shards[s].failed = shard_grow(k, &k->shards[s]);
}

/* Put some successors among the seen ones of a shard, in their order; the first of them that is new gets a number. */
static inline void enter(Kernel *k, Shard *shard, Fresh *some, u32 count, u64 number)
{
    for (u32 n = 0; n < count; n++) seen_fetch_state(k, shard, rest_of(k, some[n].found->hash));
    for (u32 n = 0; n < count; n++) {
        Fresh *fresh = &some[n];
        const Successor *found = fresh->found;
        u64 next = number + shard->fresh.count;
        k->states.at[next] = found->after;
        fresh->at = seen_put(k, shard, found->after, rest_of(k, found->hash), next);
        if (fresh->at == NO_PLACE) continue;
        shard->marks.at[fresh->place >> 6] |= 1ull << (fresh->place & 63);
        shard->fresh.at[shard->fresh.count++] = *fresh;
    }
}

static void enter_all(Kernel *k, const Batch *batch, u64 number)
{
    Shard *shard = &k->shards[number];
    Fresh some[AT_ONCE];
    u32 count = 0, done[MOST_THREADS + 1] = { 0 };
    u64 first = batch->base;
    for (u64 s = 0; s < number; s++) first += entering(k, batch, s);
    memset(shard->marks.at, 0, (batch->total / 64 + 1) * sizeof(u64));
    for (u64 i = 0; i < batch->count; i++) {
        u32 who = batch->who[i], n = done[who];
        const Successors *after = &batch->lookers[who].after[number];
        for (; n < after->count && after->at[n].of == i; n++) {
            const Successor *found = &after->at[n];
            if (found->stays) continue;
            seen_fetch(shard, rest_of(k, found->hash));
            some[count++] = (Fresh){ found, batch->place[i] + found->nth, 0 };
            if (count < AT_ONCE) continue;
            enter(k, shard, some, count, first);
            count = 0;
        }
        done[who] = n;
    }
    enter(k, shard, some, count, first);
}

static void enter_task(Kernel *k, u32 who)
{
    (void)who;
    u64 s;
    while ((s = atomic_fetch_add(&k->work->shards, 1)) < k->threads) enter_all(k, k->work->now, s);
}

/* Note what a batch's states answer, where no step leads on, and what is out of bounds. */
static int tell(Kernel *k, const Batch *batch)
{
    u64 done[MOST_THREADS + 1] = { 0 };
    for (u64 i = 0; i < batch->count; i++) {
        const Found *found = &batch->found[i];
        u32 who = batch->who[i];
        const Looker *l = &batch->lookers[who];
        for (u32 m = found->met; found->answers && m < found->met_end; m++) {
            if (!k->entries.at[l->met.at[m]].answers) continue;
            if (ROOM(k->events, 1)) return NO_MEMORY;
            k->events.at[k->events.count++] = (Event){ batch->first + i, l->met.at[m], 0 };
        }
        for (; done[who] < l->outside.count && l->outside.at[done[who]].of == i; done[who]++) {
            Bits state = l->outside.at[done[who]].state;
            if (map_get(&k->outside_map, state) != NONE) continue;
            if (map_put(&k->outside_map, state, 0) || ROOM(k->outside, 1)) return NO_MEMORY;
            k->outside.at[k->outside.count++] = state;
        }
        if (found->leads || !k->deadlocks) continue;
        if (ROOM(k->events, 1)) return NO_MEMORY;
        k->events.at[k->events.count++] = (Event){ batch->first + i, NONE, 0 };
    }
    return OK;
}

/* Room for the threads' counts of all entries that there are now; a thread that has none looks nothing up. */
static void shares_room(Kernel *k)
{
    for (u32 who = 1; who < k->threads; who++) {
        Share *share = &k->work->shares[who];
        u64 more = k->hits.count - share->hits.count;
        share->fails = ROOM(share->hits, more);
        if (share->fails || !more) continue;
        memset(share->hits.at + share->hits.count, 0, more * sizeof(u64));
        share->hits.count += more;
    }
}

static u64 shares_generated(const Kernel *k)
{
    u64 sum = 0;
    for (u32 who = 1; k->work && who < k->threads; who++) sum += k->work->shares[who].generated;
    return sum;
}

/* Move the hits that threads counted to the kernel's own. */
static void shares_hits(Kernel *k)
{
    for (u32 who = 1; k->work && who < k->threads; who++) {
        Share *share = &k->work->shares[who];
        for (u64 n = 0; n < share->hits.count; n++) k->hits.at[n] += share->hits.at[n];
        share->hits.count = 0;
    }
}

/* Do a task with all threads, or with this one alone. */
static int run(Kernel *k, Task task, int together)
{
    Work *work = k->work;
    atomic_store(&work->shards, 0);
    if (together && !work->pool && !(work->pool = pool_new(k))) return NO_MEMORY;
    if (together) pool_run(work->pool, task);
    else task(k, 0);
    return OK;
}

/* Give the last batch's new states their numbers. */
static void settle_last(Kernel *k)
{
    settle_task(k, 0);
    k->work->last = NULL;
    atomic_store(&k->work->settled, 0);
}

/* Leave the states of a batch from some on as if they had not been looked up. */
static void cut(Kernel *k, Batch *batch, u64 count, u64 end)
{
    for (u64 i = count; i < end; i++) {
        u32 who = batch->who[i];
        count_found(k, hits_of(k, who), generated_of(k, who), &batch->lookers[who], &batch->found[i], -1);
    }
    batch->count = count;
}

/* Look up all states of a batch, asking for what is missing: together with other threads, then those that lack
   something; or alone. Where that fails the batch ends. */
static int find_all(Kernel *k, Batch *batch, int together)
{
    int failed = OK, lacking = !together;
    u64 lacks = 0, missed = k->misses, end = batch->count;
    for (u32 who = 0; who <= k->threads; who++) look_anew(&batch->lookers[who], k->threads, who == k->threads);
    if (together) {
        shares_room(k);
        atomic_store(&k->work->states, 0);
        if ((failed = run(k, find_task, 1))) return failed;
        for (u32 who = 0; who < k->threads; who++) lacking |= batch->lookers[who].lacks;
    }
    settle_last(k);
    for (u64 i = 0; lacking && i < end; i++) {
        if (together && batch->found[i].code == OK) continue;
        lacks++;
        if ((failed = find(k, batch, i, k->threads))) {
            cut(k, batch, i, together ? end : i);
            break;
        }
    }
    if (together) k->together += end - lacks;
    k->calm = (together ? lacks : k->misses - missed) * FEW <= end;
    return failed;
}

/* Take what was found of a batch's states: their answers, and their successors among the seen ones. */
static int take_all(Kernel *k, Batch *batch, int together)
{
    int says = 0, failed, grows = 0;
    for (u32 who = 0; who <= k->threads; who++) says |= batch->lookers[who].says;
    if (says && (failed = tell(k, batch))) return failed;
    batch->base = k->states.count;
    batch->total = 0;
    for (u64 i = 0; i < batch->count; i++) {
        u32 count = batch->place[i];
        batch->place[i] = (u32)batch->total;
        batch->total += count;
    }
    u64 all = 0;
    for (u32 s = 0; s < k->threads; s++) {
        Shard *shard = &k->shards[s];
        u64 entries = entering(k, batch, s);
        shard->fresh.count = shard->marks.count = 0;
        if (ROOM(shard->fresh, entries) || ROOM(shard->marks, batch->total / 64 + 1)) return NO_MEMORY;
        grows |= is_short(shard, entries);
        all += entries;
    }
    if (ROOM(k->states, all)) return NO_MEMORY;
    if (grows && (failed = run(k, grow_task, together))) return failed;
    for (u32 s = 0; grows && s < k->threads; s++) if (k->shards[s].failed) return NO_MEMORY;
    if ((failed = run(k, enter_task, together))) return failed;
    u64 more = 0;
    for (u32 s = 0; s < k->threads; s++) more += k->shards[s].fresh.count;
    k->states.count += more;
    k->distinct += more;
    k->work->last = batch;
    return OK;
}

static void work_free(Kernel *k)
{
    Work *work = k->work;
    if (!work) return;
    pool_free(work->pool);
    for (u32 who = 0; who <= MOST_THREADS; who++) {
        free(work->shares[who].hits.at);
        looker_free(&work->batches[0].lookers[who]);
        looker_free(&work->batches[1].lookers[who]);
    }
    free(work);
}

#endif
